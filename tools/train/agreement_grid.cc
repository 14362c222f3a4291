#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/train/plots.h"

namespace tutti::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWidth = 760;
constexpr double kLeft = 72;
constexpr double kRight = 112;
constexpr double kRow = 15;
constexpr double kHeading = 20;
constexpr double kFoot = 28;
constexpr std::size_t kMostColumns = 100;

/// Whether the replica of each rank agreed, by step from 1: [step - 1][rank].
using Agreement = std::vector<std::vector<bool>>;

/// Which hashes are the most frequent one; the earliest rank's where several are.
std::vector<bool> agreeing(const Json& hashes) {
  std::map<std::string, std::size_t> holders;
  for (const Json& hash : hashes) ++holders[hash.get<std::string>()];
  std::string reference;
  for (const Json& hash : hashes) {
    const auto text = hash.get<std::string>();
    if (reference.empty() || holders[text] > holders[reference]) reference = text;
  }
  std::vector<bool> result;
  for (const Json& hash : hashes) result.push_back(hash.get<std::string>() == reference);
  return result;
}

Agreement agreementOf(const Json& steps, const char* hashes) {
  Agreement result;
  for (const Json& step : steps) {
    if (step.at("step") != 0) result.push_back(agreeing(step.at(hashes)));
  }
  return result;
}

double blockHeight(std::size_t nranks) { return kHeading + kRow * static_cast<double>(nranks) + kFoot; }

/// The row of one rank: a cell per step, or per few of them, in which one that differs shows.
std::string row(const Agreement& agreement, std::size_t rank, double y) {
  const std::size_t per_cell = (agreement.size() + kMostColumns - 1) / kMostColumns;
  const double step_width = (kWidth - kLeft - kRight) / static_cast<double>(agreement.size());
  std::string text;
  std::size_t agreed = 0;
  for (std::size_t at = 0; at < agreement.size(); at += per_cell) {
    const std::size_t end = std::min(at + per_cell, agreement.size());
    std::size_t agreed_here = 0;
    for (std::size_t i = at; i < end; ++i) agreed_here += agreement[i][rank] ? 1 : 0;
    agreed += agreed_here;
    text += fmt::format(R"(<rect class="cell {}" x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{}"/>)",
                        agreed_here == end - at ? "agrees" : "differs",
                        kLeft + static_cast<double>(at) * step_width, y,
                        static_cast<double>(end - at) * step_width - 0.6, kRow - 3);
  }
  return text + fmt::format(
                    "\n<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">rank {}</text><text x=\"{}\" "
                    "y=\"{:.1f}\">{} of {}</text>\n",
                    kLeft - 8, y + kRow - 4, rank, kWidth - kRight + 8, y + kRow - 4, agreed,
                    agreement.size());
}

/// All ranks of one run, with an axis of its own.
std::string block(const std::string& title, const Agreement& agreement, double top) {
  const double end = kWidth - kRight;
  std::string text = fmt::format(
      "<text class=\"words\" x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\">equal after</text>\n", kLeft,
      top + 14, title, end + 8, top + 14);
  const std::size_t nranks = agreement.empty() ? 0 : agreement.front().size();
  for (std::size_t rank = 0; rank < nranks; ++rank) {
    text += row(agreement, rank, top + kHeading + static_cast<double>(rank) * kRow);
  }
  const double bottom = top + kHeading + static_cast<double>(nranks) * kRow;
  return text +
         fmt::format(
             "<path class=\"axis\" d=\"M{} {}H{}\"/>\n<text x=\"{}\" y=\"{}\">step 1</text><text x=\"{}\" "
             "y=\"{}\" text-anchor=\"end\">step {}</text>\n",
             kLeft, bottom, end, kLeft, bottom + 15, end, bottom + 15, agreement.size());
}

}  // namespace

std::string agreementGrid(const Json& document) {
  const Agreement with = agreementOf(document.at("steps"), "hashes");
  const Agreement without =
      agreementOf(document.at("experiments").at("divergence"), "hashes_without_averaging");
  const double height = blockHeight(document.at("configuration").at("ranks").get<std::size_t>());
  return fmt::format(
             "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Whether each rank's hash agrees, by "
             "step\">\n",
             kWidth, 2 * height) +
         block("with averaging: this run", with, 0) +
         block("without averaging: an extra run", without, height) + "</svg>\n";
}

}  // namespace tutti::train

#include "bench/report.h"

#include <cstdio>
#include <exception>

#include "bench/say.h"

namespace tutti::perf {

Report::Report(const Options& options, const Collective& collective, std::optional<double> min_gbps)
    : options_(options), collective_(collective), min_gbps_(min_gbps) {
  if (!options.json_path.empty()) json_.emplace(options);
}

void Report::begin(const Options& options, const std::vector<RankInfo>& ranks, const std::string& note) {
  if (json_) {
    json_->setRanks(options, ranks);
    print("# Writing JSON output to " + json_->path() + "\n");
  }
  std::string text = bannerText(options, collective_, ranks);
  if (!note.empty() || !options.notes.empty()) text += "#\n";
  for (const std::string& remark : options.notes) text += "# " + remark + "\n";
  if (!note.empty()) text += "# " + note + "\n";
  print(text + headerText(options));
}

void Report::row(const Row& row) {
  so_far_.add(row);
  print(rowText(options_, row));
  if (json_) json_->add(options_, row);
}

void Report::end(const Totals& totals) {
  print(footerText(options_, collective_, totals, min_gbps_));
  if (json_) json_->finish(totals, min_gbps_, {});
}

void Report::fail(const std::string& error) {
  print("# error: " + error + "\n");
  try {
    if (json_) json_->finish(so_far_, min_gbps_, {error});
  } catch (const std::exception& second) {  // the first failure is the one that counts
    sayError(second.what());
  }
}

void Report::print(const std::string& text) const {
  progress_.erase();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tutti::perf

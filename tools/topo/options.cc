#include "tools/topo/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>

namespace tutti::topo {
namespace {

constexpr int kMostHosts = 4096;
constexpr int kMostRanks = 1024;
constexpr int kMostChannels = 1024;  // as NCCL_MAX_NCHANNELS

constexpr const char* kDescription =
    "Shows what a machine is made of, how its GPUs and NICs reach each other, the rings and trees that "
    "Tutti\n"
    "would use, and the bandwidth to expect of them. Of this machine, or of files that were made on "
    "others.\n";

constexpr const char* kDetails =
    "Without a section the machine is shown as a tree. Sections may be combined.\n\n"
    "  tutti-topo --matrix --rings                    this machine\n"
    "  tutti-topo --input dump.xml --format svg --output dump.svg\n"
    "  tutti-topo --input dump.xml --hosts 16 --bandwidth\n"
    "  tutti-topo --compare good.xml bad.xml\n\n"
    "--input shows a file. NCCL_TOPO_FILE acts on the library, not here: without --input this machine is "
    "shown.\n"
    "Inside a host the library sends large messages straight from each rank to each other (\"direct\"); "
    "rings\n"
    "serve between hosts, and with NCCL_ALGO=Ring. No program uses trees yet.\n\n"
    "Files: NCCL's topology XML (NCCL_TOPO_DUMP_FILE writes it) or hwloc's (lstopo FILE.xml).\n"
    "--assume-nvlink: all:12 gives every GPU 12 NVLinks to one NVSwitch; 0-1:4,2-3:4 links pairs of GPUs.\n"
    "--format json holds all sections; xml is NCCL's topology file, or with --rings or --trees its graph "
    "file.\n\n"
    "Exit status: 0, 1 warnings of --check or differences of --compare, 2 bad usage or a file that cannot be "
    "used.\n";

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: tutti-topo [--input FILE]... [--hosts N] [SECTION]... [--format FORMAT] [--output FILE]\n"
           "       tutti-topo --compare A B [--format text|json] [--output FILE]\n";
  }
};

ParsedOptions refuse(const char* why) {
  fmt::print(stderr, "tutti-topo: {}\nTry 'tutti-topo --help'.\n", why);
  return {std::nullopt, kBadUsage};
}

/// Of options that take a file or words: an empty one is a variable that was not set, most often.
CLI::Validator filled() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? std::string("is empty; leave it out") : ""; }, "");
}

CLI::Validator aboveZero() {
  return CLI::Validator(
      [](const std::string& text) {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(text, number);
        return is_number && number > 0 && std::isfinite(number)
                   ? std::string()
                   : fmt::format("{}: expected a number of more than 0", text);
      },
      "");
}

/// What the words of options turn into.
struct Words {
  std::string format = "text";
  std::string nvlinks;
  int cross_nic = 2;
  std::string p2p_level;
  std::string gdr_level;
};

PathClass levelOf(const std::string& text, const char* option) {
  const std::optional<PathClass> level = pathClassOf(text);
  if (!level || *level > PathClass::sys)
    throw std::invalid_argument(fmt::format(
        "{} {}: expected LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS, or a number from 0 on", option,
        text));
  return *level;
}

void addSections(CLI::App& app, Options& options) {
  const char* const group = "Sections";
  app.add_flag("--matrix", options.wants_matrix, "how every GPU and NIC reaches every other")->group(group);
  app.add_flag("--rings", options.wants_rings, "the rings, and what they were chosen for")->group(group);
  app.add_flag("--trees", options.wants_trees, "the double binary trees")->group(group);
  app.add_flag("--bandwidth", options.wants_bandwidth,
               "predicted bandwidth per collective, and what limits it")
      ->group(group);
  app.add_flag("--check", options.wants_check, "what costs bandwidth or looks like a mistake")->group(group);
}

void addInput(CLI::App& app, Options& options, Words& words) {
  const char* const group = "What is looked at";
  app.add_option("--input", options.inputs, "a file instead of this machine; again for more hosts")
      ->option_text("FILE")
      ->expected(1)
      ->check(filled())
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  app.add_option("--hosts", options.hosts, "as many hosts like it")
      ->option_text("N")
      ->check(CLI::Range(1, kMostHosts))
      ->group(group);
  app.add_option("--ranks", options.machine.ranks_per_host,
                 "ranks per host; else one per GPU, or one per NUMA node, but two at least")
      ->option_text("N")
      ->check(CLI::Range(1, kMostRanks))
      ->group(group);
  app.add_option("--assume-nvlink", words.nvlinks, "NVLinks that the files leave out")
      ->option_text("SPEC")
      ->check(filled())
      ->group(group);
}

void addRules(CLI::App& app, Options& options, Words& words) {
  const char* const group = "Rules of the search";
  app.add_option("--cross-nic", words.cross_nic, "as NCCL_CROSS_NIC: 0 no, 1 yes, 2 where it helps")
      ->option_text("0|1|2")
      ->check(CLI::Range(0, 2))
      ->group(group);
  app.add_option("--p2p-level", words.p2p_level, "as NCCL_P2P_LEVEL")
      ->option_text("LEVEL")
      ->check(filled())
      ->group(group);
  app.add_option("--gdr-level", words.gdr_level, "as NCCL_NET_GDR_LEVEL")
      ->option_text("LEVEL")
      ->check(filled())
      ->group(group);
  app.add_option("--graph", options.machine.graph, "rings and trees of NCCL's graph file, not the best ones")
      ->option_text("FILE")
      ->check(filled())
      ->group(group);
  app.add_option("--channels", options.machine.rules.most_channels, "as NCCL_MAX_NCHANNELS")
      ->option_text("N")
      ->check(CLI::Range(1, kMostChannels))
      ->group(group);
}

void addCosts(CLI::App& app, Options& options) {
  const char* const group = "Ranks in host memory, as measured";
  app.add_option("--combine-speed", options.machine.costs.combine_gbytes_per_s,
                 "GB/s that one rank reads and writes while it combines, with all ranks at it")
      ->option_text("GBYTES")
      ->check(aboveZero())
      ->group(group);
  app.add_option("--copy-speed", options.machine.costs.copy_gbytes_per_s,
                 "the same while it copies to and from slots")
      ->option_text("GBYTES")
      ->check(aboveZero())
      ->group(group);
  app.add_flag("--registered", options.machine.costs.lends,
               "memory of ncclMemAlloc, registered: worked on in place")
      ->group(group);
}

const std::map<std::string, Format>& formats() {
  static const std::map<std::string, Format> kFormats{{"text", Format::text},
                                                      {"xml", Format::xml},
                                                      {"json", Format::json},
                                                      {"dot", Format::dot},
                                                      {"svg", Format::svg}};
  return kFormats;
}

void addOutput(CLI::App& app, Options& options, Words& words) {
  const char* const group = "Output";
  app.add_option("--format", words.format, "text, xml, json, dot or svg")
      ->option_text("FORMAT")
      ->check(CLI::IsMember(formats()))
      ->group(group);
  app.add_option("--output", options.output, "a file instead of standard output")
      ->option_text("FILE")
      ->check(filled())
      ->group(group);
}

/// What no single option can tell. Throws std::invalid_argument.
void checkTogether(const Options& options) {
  const bool wants_channels = options.wants_rings || options.wants_trees;
  const bool wants_other = options.wants_matrix || options.wants_bandwidth || options.wants_check;
  const Format format = options.format;
  if (!options.compared.empty()) {
    if (!options.inputs.empty() || options.hosts > 1 || wants_channels || wants_other)
      throw std::invalid_argument("--compare takes its two files and no --input, --hosts or section");
    if (format != Format::text && format != Format::json)
      throw std::invalid_argument("--compare has the formats text and json");
  }
  if (format == Format::xml && wants_other)
    throw std::invalid_argument(
        "--format xml holds the topology, or the channels with --rings or --trees; leave the "
        "other sections out");
  if ((format == Format::dot || format == Format::svg) && (wants_channels || wants_other))
    throw std::invalid_argument("a picture has no sections (an SVG shows the rings always); leave them out");
}

}  // namespace

ParsedOptions parseOptions(int argc, char** argv) {
  Options options;
  Words words;
  CLI::App app{kDescription};
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kDetails);
  app.set_version_flag("--version", fmt::format("tutti-topo {}", TUTTI_VERSION));
  addInput(app, options, words);
  addSections(app, options);
  app.add_option("--compare", options.compared, "what differs between two hosts, a file each")
      ->option_text("A B")
      ->expected(2)
      ->group("Sections");
  addRules(app, options, words);
  addCosts(app, options);
  addOutput(app, options, words);
  try {
    app.parse(argc, argv);
    options.format = formats().at(words.format);
    if (!words.nvlinks.empty()) options.nvlinks = parseAssumedNvlinks(words.nvlinks);
    options.machine.rules.cross_nic = static_cast<SearchRules::CrossNic>(words.cross_nic);
    if (!words.p2p_level.empty()) options.machine.rules.p2p_level = levelOf(words.p2p_level, "--p2p-level");
    if (!words.gdr_level.empty()) options.machine.rules.rdma_level = levelOf(words.gdr_level, "--gdr-level");
    if (!options.machine.graph.empty() && app.count("--channels") > 0)
      throw std::invalid_argument("--graph FILE has its channels; leave --channels out");
    checkTogether(options);
  } catch (const CLI::Success& success) {  // --help and --version
    return {std::nullopt, app.exit(success)};
  } catch (const CLI::ExtrasError& error) {
    return refuse(fmt::format("{} (files go behind --input)", error.what()).c_str());
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  } catch (const std::invalid_argument& error) {
    return refuse(error.what());
  }
  return {options, 0};
}

}  // namespace tutti::topo

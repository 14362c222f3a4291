#include "bench/command_line.h"

#include <iostream>
#include <stdexcept>

#include "bench/sizes.h"

namespace tutti::perf {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

}  // namespace

CLI::Option* addText(CLI::App& app, const std::string& flags, const std::string& type,
                     const std::string& help, const std::function<void(const std::string&)>& read) {
  const std::string name = flags.substr(0, flags.find(','));
  const auto checked = [name, read](const std::string& text) {
    try {
      read(text);
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return app.add_option_function<std::string>(flags, checked, help)->type_name(type);
}

CLI::Option* addSize(CLI::App& app, const std::string& flags, std::size_t& target, const std::string& help) {
  return addText(app, flags, "SIZE", help, [&target](const std::string& text) { target = parseSize(text); });
}

CLI::Option* addDevice(CLI::App& app, device::Choice& target) {
  return addText(app, "--device", "DEVICE",
                 "where buffers live: host, cuda, or auto: on GPUs where one can be used [auto]",
                 [&target](const std::string& text) { target = device::parseChoice(text); });
}

CLI::Option* addJsonPath(CLI::App& app, const std::string& flags, std::string& target) {
  return app
      .add_option(flags, target,
                  "write results as JSON; an existing file is kept, and FILE.0, FILE.1, ... tried")
      ->type_name("FILE");
}

std::optional<int> parseCommandLine(CLI::App& app, int argc, char** argv,
                                    const std::function<void()>& validate, bool speaks) {
  try {
    app.parse(argc, argv);
    validate();
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    if (!speaks || std::cout << app.help() << std::flush) return 0;
    std::cerr << app.get_name() << ": cannot write to standard output\n";
    return kFailed;
  } catch (const CLI::ParseError& error) {
    if (speaks)
      std::cerr << app.get_name() << ": " << error.what() << "\n"
                << app.get_name() << " --help lists the flags.\n";
    return kBadUsage;
  }
}

}  // namespace tutti::perf

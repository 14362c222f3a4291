#include "runtime/core/settings.h"

#include "runtime/core/setting_row.h"
#include "tutti/error.h"

namespace tutti {

Settings readSettings(const std::function<const char*(const char*)>& get) {
  Settings settings{};
  for (const ActingRow& row : actingRows()) {
    const char* value = get(std::string(row.name).c_str());
    const bool is_set = value != nullptr && *value != '\0';
    row.apply(settings, row, is_set ? std::string_view(value) : row.default_value);
    if (!is_set || row.on == ActsOn::any) continue;
    (row.on == ActsOn::gpu ? settings.ignored_on_host : settings.ignored_on_gpus).emplace_back(row.name);
  }
  for (const IdleRow& row : idleRows()) {
    const char* value = get(std::string(row.name).c_str());
    if (value == nullptr || *value == '\0') continue;
    requireForm(row, value);
    settings.ignored.emplace_back(row.name);
  }
  return settings;
}

SettingEffect effectOf(std::string_view name, std::string_view value) {
  try {
    const std::string text(value);
    const Settings settings =
        readSettings([&](const char* asked) { return name == asked ? text.c_str() : nullptr; });
    return {.acts = settings.ignored.empty(), .problem = {}};
  } catch (const Error& error) {
    return {.acts = false, .problem = error.what()};
  }
}

}  // namespace tutti

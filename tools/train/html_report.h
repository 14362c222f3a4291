// The page of --html.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti::train {

/// One page that needs nothing else, from the document of a training run with experiments. It holds that
/// document itself, as JSON in <script id="data">; its markup is well-formed XML but for the DOCTYPE.
std::string htmlPage(const nlohmann::ordered_json& document);

/// `text` with &, < > and " written as entities.
std::string escaped(const std::string& text);

}  // namespace tutti::train

// The figures of the page: each one a <figure> with title, legend, chart and a caption in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tutti::train {

// All take the document of a training run.
std::string lossFigure(const nlohmann::ordered_json& document);
std::string agreementFigure(const nlohmann::ordered_json& document);
std::string trafficFigure(const nlohmann::ordered_json& document);
std::string divergenceFigure(const nlohmann::ordered_json& document);

/// The agreement grid alone; in a file of its own because it is no chart with two axes of numbers.
std::string agreementGrid(const nlohmann::ordered_json& document);

/// "1 057 056": digits in groups of three, with no-break spaces.
std::string grouped(std::uint64_t value);

}  // namespace tutti::train

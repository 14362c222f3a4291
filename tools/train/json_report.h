// Everything that was found, as JSON; README.md describes the schema.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/train/options.h"
#include "tools/train/record.h"

namespace tutti::train {

/// What every document begins with: schema, mode, version of the program.
nlohmann::ordered_json startDocument(const char* mode);

/// The document of a training run.
nlohmann::ordered_json trainingDocument(const Options& options, const Corpus& corpus,
                                        const RunRecord& record);

/// The text of a document, with a line end. Numbers that JSON has no word for (NaN, infinity) become null.
std::string textOf(const nlohmann::ordered_json& document);

}  // namespace tutti::train

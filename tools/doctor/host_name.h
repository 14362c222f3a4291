// What this host is called.
#pragma once

#include <string>

namespace tutti::doctor {

std::string hostName();

}  // namespace tutti::doctor

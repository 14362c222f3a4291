// Where unique ids come from: a rendezvous of this process, or an address that all ranks were told.
#pragma once

#include <string>
#include <string_view>

#include "nccl.h"
#include "runtime/core/settings.h"
#include "runtime/log.h"
#include "runtime/process.h"

namespace tutti {

/// ncclGetUniqueId: opens a rendezvous on an interface chosen by the settings; where NCCL_COMM_ID is set,
/// agreedUniqueId of it.
ncclUniqueId newUniqueId(Process& process);

/// For ranks that are all threads of this process.
ncclUniqueId localUniqueId(Process& process);

/// The id that every rank makes from the same HOST:PORT, where rank 0 opens the rendezvous when it makes its
/// communicator. `variable` is what holds it, for messages. The secret is the hash of TUTTI_SECRET_FILE's
/// contents. Throws Error(ncclInvalidUsage) when that is not set and TUTTI_INSECURE neither, or when others
/// can read the file.
ncclUniqueId agreedUniqueId(std::string_view host_and_port, std::string_view variable,
                            const NetworkSettings& settings, Log& log);

}  // namespace tutti

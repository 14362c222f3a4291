// Local registration of a buffer (ncclCommRegister), for as long as the object lives.
#pragma once

#include <cstddef>

#include "tutti/tutti.h"

namespace tutti::perf {

class Registration {
 public:
  /// `data` is memory of ncclMemAlloc and outlives the object. Throws Error.
  Registration(ncclComm_t comm, void* data, std::size_t bytes) : comm_(comm) {
    check(ncclCommRegister(comm_, data, bytes, &handle_));
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  /// A communicator that was aborted meanwhile has forgotten its registrations.
  ~Registration() { ncclCommDeregister(comm_, handle_); }

 private:
  ncclComm_t comm_;
  void* handle_ = nullptr;
};

}  // namespace tutti::perf

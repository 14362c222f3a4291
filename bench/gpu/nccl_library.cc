#include <dlfcn.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/gpu/contender.h"
#include "nccl.h"

namespace tutti::gpu_bench {
namespace {

/// The functions of one library. RTLD_LOCAL: each library calls its own, whatever else is loaded.
struct Api {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) init_rank;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclGetVersion) version;
};

class Library final : public Contender {
 public:
  Library(std::string name, const std::string& path, const Arrangement& arrangement)
      : name_(std::move(name)),
        ranks_(arrangement.ranks),
        comms_(static_cast<std::size_t>(arrangement.ranks)) {
    // Never closed: threads of its own may be in its code until the process ends.
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == nullptr) throw std::runtime_error("cannot load " + path + ": " + ::dlerror());
    find(library, "ncclGetUniqueId", api_.get_unique_id);
    find(library, "ncclCommInitRank", api_.init_rank);
    find(library, "ncclCommDestroy", api_.destroy);
    find(library, "ncclAllReduce", api_.all_reduce);
    find(library, "ncclGetErrorString", api_.error_string);
    find(library, "ncclGetLastError", api_.last_error);
    find(library, "ncclGetVersion", api_.version);
    check(api_.get_unique_id(&id_), "ncclGetUniqueId", nullptr);
    int version = 0;
    check(api_.version(&version), "ncclGetVersion", nullptr);
    if (name_ != "tutti") name_.append(" ").append(std::to_string(version));
  }

  std::string name() const override { return name_; }

  void join(int rank) override {
    check(api_.init_rank(&comm(rank), ranks_, id_, rank), "ncclCommInitRank", nullptr);
  }

  void leave(int rank) override { check(api_.destroy(comm(rank)), "ncclCommDestroy", nullptr); }

  void allReduce(int rank, const float* in, float* out, std::size_t count, cudaStream_t stream) override {
    check(api_.all_reduce(in, out, count, ncclFloat, ncclSum, comm(rank), stream), "ncclAllReduce",
          comm(rank));
  }

 private:
  template <class Function>
  static void find(void* library, const char* symbol, Function& function) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym knows no types
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    if (function == nullptr) throw std::runtime_error(std::string("no ") + symbol + ": " + ::dlerror());
  }

  void check(ncclResult_t result, const char* call, ncclComm_t comm) const {
    if (result == ncclSuccess) return;
    throw std::runtime_error(name_ + ": " + call + ": " + api_.error_string(result) + ": " +
                             api_.last_error(comm));
  }

  ncclComm_t& comm(int rank) { return comms_[static_cast<std::size_t>(rank)]; }

  std::string name_;
  int ranks_;
  Api api_{};
  ncclUniqueId id_{};
  std::vector<ncclComm_t> comms_;
};

class Copy final : public Contender {
 public:
  std::string name() const override { return "cudaMemcpyAsync"; }
  void join(int /*rank*/) override {}
  void leave(int /*rank*/) override {}
  void allReduce(int /*rank*/, const float* in, float* out, std::size_t count, cudaStream_t stream) override {
    const cudaError_t error =
        cudaMemcpyAsync(out, in, count * sizeof(float), cudaMemcpyDeviceToDevice, stream);
    if (error != cudaSuccess)
      throw std::runtime_error(std::string("cudaMemcpyAsync: ") + cudaGetErrorString(error));
  }
};

}  // namespace

std::unique_ptr<Contender> loadLibrary(const std::string& name, const std::string& path,
                                       const Arrangement& arrangement) {
  return std::make_unique<Library>(name, path, arrangement);
}

std::unique_ptr<Contender> makeCopy() { return std::make_unique<Copy>(); }

}  // namespace tutti::gpu_bench

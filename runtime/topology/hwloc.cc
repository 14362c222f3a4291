#include "runtime/topology/hwloc.h"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "runtime/core/shared_library.h"

namespace tutti {
namespace {

// As hwloc.h of version 2 has them (libhwloc.so.15).
using Machine = struct hwloc_topology*;
constexpr int kKeepImportant = 3;
constexpr unsigned long kBlacklist = 1;

struct Hwloc {
  int (*init)(Machine*);
  int (*blacklist)(Machine, unsigned long, const char*);
  int (*filter_io)(Machine, int);
  int (*load)(Machine);
  int (*export_xml)(Machine, char**, int*, unsigned long);
  void (*free_xml)(Machine, char*);
  void (*destroy)(Machine);
};

HwlocView ask() {
  SharedLibrary library({"libhwloc.so.15"});
  Hwloc hwloc{};
  library.find(hwloc.init, "hwloc_topology_init");
  library.find(hwloc.blacklist, "hwloc_topology_set_components");
  library.find(hwloc.filter_io, "hwloc_topology_set_io_types_filter");
  library.find(hwloc.load, "hwloc_topology_load");
  library.find(hwloc.export_xml, "hwloc_topology_export_xmlbuffer");
  library.find(hwloc.free_xml, "hwloc_free_xmlbuffer");
  library.find(hwloc.destroy, "hwloc_topology_destroy");
  if (!library.problem().empty()) return {.xml = {}, .problem = library.problem()};
  Machine machine = nullptr;
  if (hwloc.init(&machine) != 0) return {.xml = {}, .problem = "hwloc_topology_init failed"};
  // Tools of makers, which may hang; and pci, by libpciaccess, which never frees its names: hwloc reads PCI
  // from /sys, too.
  for (const char* component : {"cuda", "nvml", "gl", "opencl", "rsmi", "levelzero", "pci"})
    hwloc.blacklist(machine, kBlacklist, component);
  hwloc.filter_io(machine, kKeepImportant);
  HwlocView view;
  char* text = nullptr;
  int length = 0;
  if (hwloc.load(machine) != 0) {
    view.problem = "hwloc_topology_load failed";
  } else if (hwloc.export_xml(machine, &text, &length, 0) != 0 || text == nullptr) {
    view.problem = "hwloc_topology_export_xmlbuffer failed";
  } else {
    view.xml = text;
    hwloc.free_xml(machine, text);
  }
  hwloc.destroy(machine);
  return view;
}

}  // namespace

HwlocView askHwloc() {
  constexpr auto kAtMost = std::chrono::seconds(5);
  auto task = std::make_shared<std::packaged_task<HwlocView()>>(ask);
  std::future<HwlocView> answer = task->get_future();
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string problem;
  try {
    // Where it hangs, as on a device that does not answer, its thread is left behind.
    std::thread([task] { (*task)(); }).detach();
  } catch (const std::system_error& error) {
    problem = std::string("its thread cannot be started: ") + error.what();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!problem.empty()) return {.xml = {}, .problem = std::move(problem)};
  if (answer.wait_for(kAtMost) == std::future_status::ready) return answer.get();
  return {.xml = {}, .problem = "it took longer than 5 s"};
}

}  // namespace tutti

// An invented /sys, of which discovery reads as of the real one.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "runtime/topology/discovery.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {

class FakeSystem {
 public:
  /// What discovery is asked with: this system, no hwloc, no GPUs but those of PCI.
  DiscoveryOptions options() const {
    DiscoveryOptions options;
    options.system = root_.path();
    options.processes = root_.path() + "/proc";
    options.hwloc = HwlocUse::never;
    options.with_gpus = false;
    return options;
  }

  void write(const std::string& file, const std::string& line) const {
    std::filesystem::create_directories((path(file)).parent_path());
    root_.write(file, line + "\n");
  }
  std::filesystem::path path(const std::string& file) const { return root_.path() + "/" + file; }

  void addNumaNode(int number, const std::string& cpus) const {
    write(fmt::format("devices/system/node/node{}/cpulist", number), cpus);
  }
  void addCpu(int number, int package, const std::string& l2, const std::string& l3) const {
    const std::string folder = fmt::format("devices/system/cpu/cpu{}/", number);
    write(folder + "topology/physical_package_id", std::to_string(package));
    write(folder + "cache/index2/shared_cpu_list", l2);
    if (!l3.empty()) write(folder + "cache/index3/shared_cpu_list", l3);
  }
  /// `place`: "pci0000:10/0000:10:01.0/0000:11:00.0", of which the last is added.
  void addPci(const std::string& place, const std::string& device_class, const std::string& vendor,
              int numa_node) const {
    const std::string folder = "devices/" + place + "/";
    write(folder + "class", device_class);
    write(folder + "vendor", vendor);
    write(folder + "device", "0x1234");
    write(folder + "numa_node", std::to_string(numa_node));
    const std::string id = std::filesystem::path(place).filename().string();
    link("bus/pci/devices/" + id, path("devices/" + place));
  }
  void setLink(const std::string& place, const std::string& speed, int width, const std::string& most_speed,
               int most_width) const {
    const std::string folder = "devices/" + place + "/";
    write(folder + "current_link_speed", speed);
    write(folder + "current_link_width", std::to_string(width));
    write(folder + "max_link_speed", most_speed);
    write(folder + "max_link_width", std::to_string(most_width));
  }
  /// `place`: of its PCI device; empty: it has none.
  void addRdma(const std::string& name, int port, const std::string& place, const std::string& state,
               const std::string& rate) const {
    const std::string folder = fmt::format("class/infiniband/{}/", name);
    write(folder + "node_guid", "b859:9f03:00d4:1a2c");
    write(fmt::format("{}ports/{}/state", folder, port), state);
    write(fmt::format("{}ports/{}/rate", folder, port), rate);
    if (!place.empty()) link(folder + "device", path("devices/" + place));
  }
  void addInterface(const std::string& name, const std::string& place, const std::string& flags,
                    const std::string& speed) const {
    const std::string folder = fmt::format("class/net/{}/", name);
    write(folder + "flags", flags);
    write(folder + "operstate", flags == "0x1002" ? "down" : "up");
    write(folder + "speed", speed);
    if (!place.empty()) link(folder + "device", path("devices/" + place));
  }

 private:
  void link(const std::string& file, const std::filesystem::path& to) const {
    std::filesystem::create_directories(path(file).parent_path());
    std::filesystem::create_directories(to);
    if (!std::filesystem::is_symlink(path(file))) std::filesystem::create_symlink(to, path(file));
  }

  ScratchDirectory root_;
};

}  // namespace tutti::test

#include <fmt/format.h>

#include <map>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

void takeScope(InstructionWriter& w) { w.takeOneOf({"cta", "cluster", "gpu", "sys"}); }

/// "shared" for the shared window; "private" for parameters and locals; else "".
std::string_view takeSpace(InstructionWriter& w) {
  if (!w.takeOneOf({"shared", "shared::cta", "shared::cluster"}).empty()) return "shared";
  if (!w.takeOneOf({"param", "param::entry", "param::func", "local"}).empty()) return "private";
  w.takeOneOf({"global", "const"});
  return "";
}

/// 1 for a scalar.
int takeVector(InstructionWriter& w) {
  const std::string_view vector = w.takeOneOf({"v2", "v4", "v8"});
  return vector.empty() ? 1 : vector[1] - '0';
}

struct Access {
  std::string_view space;
  std::string_view order;  // empty: weak
  int elements = 1;
  std::string_view type;
};

Access takeAccess(InstructionWriter& w) {
  Access access;
  access.space = takeSpace(w);
  access.order = takeOrder(w);
  w.take("nc");
  takeHints(w);
  access.elements = takeVector(w);
  access.type = w.takeType();
  if (access.elements * bitsOfType(access.type) > 256) w.fail("an access of more than 32 bytes is not known");
  return access;
}

/// A parameter or local at an offset that is aligned for certain: memory of this thread alone.
bool isPrivateName(const InstructionWriter& w, const Operand& address, const Access& access) {
  const std::int64_t bytes = std::int64_t{bitsOfType(access.type)} / 8 * access.elements;
  return access.space == "private" && w.scope().isMemory(address.name) && address.offset % bytes == 0;
}

/// What of an access goes between < and >.
std::string loadArguments(const Access& access) {
  const std::string type = isFloatType(access.type) ? storageType(access.type) : cppType(access.type);
  const std::string count = access.elements > 1 ? fmt::format(", {}", access.elements) : "";
  return type + count + (access.order.empty() ? "" : fmt::format(", {}", access.order));
}

void writeLoad(InstructionWriter& w) {
  const Access access = takeAccess(w);
  w.expectOperands(2, 3);  // the third is a cache policy
  const std::string arguments = loadArguments(access);
  const std::string address = w.address(1, access.space);
  const Operand& to = w.operands()[0];
  if (access.elements == 1) {
    const char* function = !access.order.empty() ? "loadStrong" : "load";
    if (isPrivateName(w, w.operands()[1], access))
      return w.out(0, fmt::format("peek<{}>({})", arguments, address));
    return w.out(0, fmt::format("{}<{}>(t, {})", function, arguments, address));
  }
  if (to.elements.size() != static_cast<std::size_t>(access.elements))
    w.fail("a vector of that many expected");
  w.line("{");
  w.line(fmt::format("const auto all = {}<{}>(t, {});",
                     access.order.empty() ? "loadVector" : "loadVectorStrong", arguments, address));
  for (std::size_t i = 0; i < to.elements.size(); ++i) w.assign(to.elements[i], fmt::format("all.at[{}]", i));
  w.line("}");
}

void writeStore(InstructionWriter& w) {
  const Access access = takeAccess(w);
  w.expectOperands(2, 3);
  const std::string type = isFloatType(access.type) ? storageType(access.type) : cppType(access.type);
  const std::string arguments = loadArguments(access);
  const std::string address = w.address(0, access.space);
  const Operand& from = w.operands()[1];
  if (access.elements == 1) {
    if (isPrivateName(w, w.operands()[0], access)) {
      return w.line(fmt::format("poke<{}>({}, {});", arguments, address, w.value(from, access.type)));
    }
    return w.line(fmt::format("{}<{}>(t, {}, {});", access.order.empty() ? "store" : "storeStrong", arguments,
                              address, w.value(from, access.type)));
  }
  if (from.elements.size() != static_cast<std::size_t>(access.elements))
    w.fail("a vector of that many expected");
  std::string values;
  for (const Operand& element : from.elements) {
    values += (values.empty() ? "" : ", ") + w.value(element, access.type);
  }
  w.line(fmt::format("{}<{}>(t, {}, Elements<{}, {}>{{{{{}}}}});",
                     access.order.empty() ? "storeVector" : "storeVectorStrong", arguments, address, type,
                     access.elements, values));
}

/// cp.async of 4, 8 or 16 bytes: a copy that is complete at once, so that there is nothing to wait for later.
/// Copies in bulk, with barriers in memory, are not known.
void writeAsynchronousCopy(InstructionWriter& w) {
  if (!w.take("async")) w.fail(".async expected");
  if (w.take("commit_group") || w.take("wait_all")) return w.expectOperands(0, 0);
  if (w.take("wait_group")) return w.expectOperands(1, 1);
  if (w.takeOneOf({"ca", "cg"}).empty()) w.fail("only asynchronous copies of 4, 8 and 16 bytes are known");
  const bool to_shared = !w.takeOneOf({"shared", "shared::cta", "shared::cluster"}).empty();
  if (!to_shared || !w.take("global")) w.fail("only copies from global to shared memory are known");
  if (w.take("L2::cache_hint")) w.fail("a copy with a cache policy is not known");
  takeHints(w);
  w.expectOperands(3, 4);
  const Operand& bytes = w.operands()[2];
  if (bytes.kind != Operand::Kind::Integer || (bytes.bits != 4 && bytes.bits != 8 && bytes.bits != 16))
    w.fail("a size of 4, 8 or 16 expected");
  w.line(fmt::format("copyToShared<{}>(t, {}, {}, {});", bytes.bits, w.address(0, "shared"), w.address(1, ""),
                     w.count() == 4 ? w.in(3, "u32") : std::to_string(bytes.bits)));
}

void writeFence(InstructionWriter& w) {
  w.expectOperands(0, 3);
  std::string_view order = "__ATOMIC_SEQ_CST";
  if (w.opcode() == "membar") {
    if (w.takeOneOf({"cta", "gl", "sys"}).empty() && !w.take("proxy")) w.fail("a level expected");
  } else {
    const std::string_view semantics = w.takeOneOf({"sc", "acq_rel", "acquire", "release"});
    if (semantics == "acq_rel") order = "__ATOMIC_ACQ_REL";
    if (semantics == "acquire") order = "__ATOMIC_ACQUIRE";
    if (semantics == "release") order = "__ATOMIC_RELEASE";
    takeScope(w);
  }
  // Proxies are other paths to memory, of which the host has none.
  for (const std::string_view proxy :
       {"proxy", "alias", "async", "async::generic", "async.global", "async.shared::cta",
        "tensormap::generic", "mbarrier_init", "shared::cta", "shared::cluster", "global",
        "sync_restrict::shared::cta"}) {
    w.take(proxy);
  }
  w.line(fmt::format("__atomic_thread_fence({});", order));
}

/// createpolicy: a policy is only ever handed to hints.
void writePolicy(InstructionWriter& w) {
  for (const std::string_view kind : {"fractional", "range", "cvt", "global"}) w.take(kind);
  takeHints(w);
  w.takeType();
  w.out(0, "0");
}

/// Instructions that only advise the hardware.
void writeAdvice(InstructionWriter& w) {
  w.takeOneOf({"global", "local", "const", "param"});
  w.take("tensormap");
  takeHints(w);
  for (const std::string_view what : {"launch_dependents", "wait"}) w.take(what);
}

}  // namespace

void takeHints(InstructionWriter& w) {
  for (const std::string_view hint : {"ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "unified",
                                      "L1",
                                      "L2",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_last",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_unchanged",
                                      "L2::cache_hint",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B"}) {
    w.take(hint);
  }
}

std::string_view takeOrder(InstructionWriter& w) {
  static const std::map<std::string_view, std::string_view> known{
      {"volatile", "__ATOMIC_RELAXED"}, {"relaxed", "__ATOMIC_RELAXED"}, {"mmio", "__ATOMIC_RELAXED"},
      {"acquire", "__ATOMIC_ACQUIRE"},  {"release", "__ATOMIC_RELEASE"}, {"acq_rel", "__ATOMIC_ACQ_REL"}};
  std::string_view order;
  for (const auto& [modifier, host] : known) {
    if (w.take(modifier) && (order.empty() || modifier != "relaxed")) order = host;
  }
  w.take("weak");
  takeScope(w);
  return order;
}

const WriterTable& memoryWriters() {
  static const WriterTable table{{"ld", writeLoad},
                                 {"ldu", writeLoad},
                                 {"st", writeStore},
                                 {"cp", writeAsynchronousCopy},
                                 {"fence", writeFence},
                                 {"membar", writeFence},
                                 {"prefetch", writeAdvice},
                                 {"prefetchu", writeAdvice},
                                 {"discard", writeAdvice},
                                 {"applypriority", writeAdvice},
                                 {"createpolicy", writePolicy},
                                 {"griddepcontrol", writeAdvice}};
  return table;
}

}  // namespace tutti::emulator::ptx

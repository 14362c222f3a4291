#include "tests/nccl_conformance/arguments.h"

namespace conformance {
namespace {

constexpr ncclResult_t kArgument = ncclInvalidArgument;
constexpr ncclResult_t kUsage = ncclInvalidUsage;

/// Joins alone, with a configuration of which `change` made something wrong.
template <class Change>
ncclResult_t joinWith(const Change& change) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  change(config);
  ncclComm_t comm = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, newId(), 0, &config);
  EXPECT_EQ(comm, nullptr);
  return result;
}

void addProcess(std::vector<WrongCall>& rows) {
  rows.insert(rows.end(),
              {{"GetVersion", "version", "NULL", kArgument, By::all,
                [](auto&, auto&) { return ncclGetVersion(nullptr); }},
               {"GetUniqueId", "uniqueId", "NULL", kArgument, By::all,
                [](auto&, auto&) { return ncclGetUniqueId(nullptr); }},
               {"MemAlloc", "ptr", "NULL", kArgument, By::all,
                [](auto&, auto&) { return ncclMemAlloc(nullptr, 64); }},
               {"MemFree", "ptr", "of nobody", kArgument, By::tutti,
                [](auto&, const Props& p) { return ncclMemFree(static_cast<char*>(p.data) + 8); }},
               {"GroupEnd", "ncclGroupStart", "missing", kUsage, By::all,
                [](auto&, auto&) { return ncclGroupEnd(); }}});
}

void addJoining(std::vector<WrongCall>& rows) {
  rows.push_back({"CommInitRank", "comm", "NULL", kArgument, By::all,
                  [](auto&, auto&) { return ncclCommInitRank(nullptr, 1, newId(), 0); }});
  const std::pair<int, int> sizes[] = {{0, 0}, {-1, 0}, {2, 2}, {2, -1}};
  for (const auto& [nranks, rank] : sizes) {
    rows.push_back({"CommInitRank", nranks < 1 ? "nranks" : "rank",
                    std::to_string(rank) + " of " + std::to_string(nranks), kArgument, By::all,
                    [nranks = nranks, rank = rank](auto&, auto&) {
                      ncclComm_t comm = nullptr;
                      return ncclCommInitRank(&comm, nranks, newId(), rank);
                    }});
  }
  rows.push_back({"CommInitRank", "commId", "zeros", kArgument, By::tutti, [](auto&, auto&) {
                    ncclComm_t comm = nullptr;
                    return ncclCommInitRank(&comm, 1, ncclUniqueId{}, 0);
                  }});
}

void addConfig(std::vector<WrongCall>& rows) {
  const auto add = [&](const char* field, int value, int ncclConfig_t::*member) {
    rows.push_back({"CommInitRankConfig", field, std::to_string(value), kArgument, By::all,
                    [=](auto&, auto&) { return joinWith([=](ncclConfig_t& c) { c.*member = value; }); }});
  };
  add("blocking", 2, &ncclConfig_t::blocking);
  add("blocking", -1, &ncclConfig_t::blocking);
  add("cgaClusterSize", -1, &ncclConfig_t::cgaClusterSize);
  add("minCTAs", 0, &ncclConfig_t::minCTAs);
  add("maxCTAs", 0, &ncclConfig_t::maxCTAs);
  add("splitShare", 2, &ncclConfig_t::splitShare);
  add("shrinkShare", -3, &ncclConfig_t::shrinkShare);
  rows.push_back({"CommInitRankConfig", "minCTAs", "above maxCTAs", kArgument, By::all, [](auto&, auto&) {
                    return joinWith([](ncclConfig_t& c) {
                      c.minCTAs = 8;
                      c.maxCTAs = 4;
                    });
                  }});
  rows.push_back({"CommInitRankConfig", "config", "not initialized", kArgument, By::all,
                  [](auto&, auto&) { return joinWith([](ncclConfig_t& c) { c.magic = 0; }); }});
}

void addInitAll(std::vector<WrongCall>& rows) {
  rows.push_back({"CommInitAll", "comm", "NULL", kArgument, By::all,
                  [](auto&, auto&) { return ncclCommInitAll(nullptr, 1, nullptr); }});
  rows.push_back({"CommInitAll", "ndev", "-1", kArgument, By::all, [](auto&, auto&) {
                    ncclComm_t comm = nullptr;
                    return ncclCommInitAll(&comm, -1, nullptr);
                  }});
  rows.push_back({"CommInitAll", "device", "twice", kUsage, By::all, [](auto&, auto&) {
                    ncclComm_t comms[2]{};
                    const int devices[] = {0, 0};
                    return ncclCommInitAll(comms, 2, devices);
                  }});
  rows.push_back({"CommInitAll", "device", "-1", kArgument, By::all, [](auto&, auto&) {
                    ncclComm_t comm = nullptr;
                    const int device = -1;
                    return ncclCommInitAll(&comm, 1, &device);
                  }});
}

/// Questions: (comm, int* or ncclResult_t*).
template <class Function>
void addQuestion(std::vector<WrongCall>& rows, const char* name, const char* answer, Function* function) {
  rows.push_back({name, "comm", "NULL", kArgument, By::all, [function](auto&, auto&) {
                    std::int32_t unused = 0;
                    return function(nullptr, &unused);
                  }});
  rows.push_back({name, "comm", "destroyed", kArgument, By::tutti, [function](auto&, const Props& p) {
                    std::int32_t unused = 0;
                    return function(p.dead, &unused);
                  }});
  rows.push_back({name, answer, "NULL", kArgument, By::all,
                  [function](const Rank& r, auto&) { return function(r.comm, nullptr); }});
}

ncclResult_t asyncError(ncclComm_t comm, std::int32_t* code) {
  ncclResult_t unused = ncclSuccess;
  return ncclCommGetAsyncError(comm, code != nullptr ? &unused : nullptr);
}

void addEnds(std::vector<WrongCall>& rows) {
  const std::pair<const char*, ncclResult_t (*)(ncclComm_t)> ends[] = {
      {"CommFinalize", ncclCommFinalize}, {"CommDestroy", ncclCommDestroy}, {"CommAbort", ncclCommAbort}};
  for (const auto& [name, function] : ends) {
    rows.push_back({name, "comm", "destroyed", kArgument, By::tutti,
                    [function = function](auto&, const Props& p) { return function(p.dead); }});
  }
}

void addRegistration(std::vector<WrongCall>& rows) {
  const auto add = [&](const char* argument, const char* value, By by, auto call) {
    rows.push_back({"CommRegister", argument, value, kArgument, by, call});
  };
  add("comm", "NULL", By::all, [](auto&, const Props& p) {
    void* handle = nullptr;
    return ncclCommRegister(nullptr, p.data, 64, &handle);
  });
  add("buff", "NULL", By::tutti, [](const Rank& r, auto&) {
    void* handle = nullptr;
    return ncclCommRegister(r.comm, nullptr, 64, &handle);
  });
  add("size", "0", By::tutti, [](const Rank& r, const Props& p) {
    void* handle = nullptr;
    return ncclCommRegister(r.comm, p.data, 0, &handle);
  });
  add("handle", "NULL", By::tutti,
      [](const Rank& r, const Props& p) { return ncclCommRegister(r.comm, p.data, 64, nullptr); });
  rows.push_back({"CommDeregister", "comm", "NULL", kArgument, By::all,
                  [](auto&, const Props& p) { return ncclCommDeregister(nullptr, p.data); }});
  rows.push_back({"CommDeregister", "handle", "of nobody", kUsage, By::all,
                  [](const Rank& r, const Props& p) { return ncclCommDeregister(r.comm, p.data); }});
}

void addOperators(std::vector<WrongCall>& rows) {
  const auto add = [&](const char* argument, const char* value, By by, auto call) {
    rows.push_back({"RedOpCreatePreMulSum", argument, value, kArgument, by, call});
  };
  constexpr ncclScalarResidence_t kHost = ncclScalarHostImmediate;
  add("op", "NULL", By::tutti, [](const Rank& r, const Props& p) {
    return ncclRedOpCreatePreMulSum(nullptr, p.data, ncclFloat, kHost, r.comm);
  });
  add("scalar", "NULL", By::tutti, [](const Rank& r, auto&) {
    ncclRedOp_t op;
    return ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat, kHost, r.comm);
  });
  add("datatype", "12", By::tutti, [](const Rank& r, const Props& p) {
    ncclRedOp_t op;
    return ncclRedOpCreatePreMulSum(&op, p.data, enumerator<ncclDataType_t>(12), kHost, r.comm);
  });
  add("residence", "2", By::tutti, [](const Rank& r, const Props& p) {
    ncclRedOp_t op;
    return ncclRedOpCreatePreMulSum(&op, p.data, ncclFloat, enumerator<ncclScalarResidence_t>(2), r.comm);
  });
  add("comm", "NULL", By::all, [](auto&, const Props& p) {
    ncclRedOp_t op;
    return ncclRedOpCreatePreMulSum(&op, p.data, ncclFloat, kHost, nullptr);
  });
  for (int op :
       {static_cast<int>(ncclSum), static_cast<int>(ncclAvg), static_cast<int>(ncclNumOps) + 1000, -1}) {
    rows.push_back({"RedOpDestroy", "op", std::to_string(op), kArgument, By::all, [op](const Rank& r, auto&) {
                      return ncclRedOpDestroy(enumerator<ncclRedOp_t>(op), r.comm);
                    }});
  }
  rows.push_back({"RedOpDestroy", "op", "destroyed", kArgument, By::all,
                  [](const Rank& r, const Props& p) { return ncclRedOpDestroy(p.destroyed_op, r.comm); }});
  rows.push_back({"RedOpDestroy", "comm", "NULL", kArgument, By::all,
                  [](auto&, const Props& p) { return ncclRedOpDestroy(p.of_double, nullptr); }});
}

/// None of these calls waits for another rank: each is refused before.
void addSubgroups(std::vector<WrongCall>& rows) {
  const auto addSplit = [&](const char* argument, const char* value, By by, auto call) {
    rows.push_back({"CommSplit", argument, value, kArgument, by, call});
  };
  addSplit("comm", "NULL", By::all, [](auto&, auto&) {
    ncclComm_t child = nullptr;
    return ncclCommSplit(nullptr, 0, 0, &child, nullptr);
  });
  addSplit("newcomm", "NULL", By::all,
           [](const Rank& r, auto&) { return ncclCommSplit(r.comm, 0, 0, nullptr, nullptr); });
  addSplit("color", "-2", By::tutti, [](const Rank& r, auto&) {
    ncclComm_t child = nullptr;
    return ncclCommSplit(r.comm, -2, 0, &child, nullptr);
  });
  addSplit("blocking", "7", By::all, [](const Rank& r, auto&) {
    ncclComm_t child = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 7;
    return ncclCommSplit(r.comm, 0, 0, &child, &config);
  });
  struct Shrink {
    const char* argument;
    const char* value;
    int excluded;
    int count;
  };
  const Shrink lists[] = {{"excludeRanksList", "a rank that is none", 99, 1},
                          {"excludeRanksList", "a negative rank", -1, 1},
                          {"excludeRanksCount", "-1", 0, -1}};
  for (const Shrink& list : lists) {
    rows.push_back(
        {"CommShrink", list.argument, list.value, kArgument, By::all, [list](const Rank& r, auto&) {
           ncclComm_t child = nullptr;
           int excluded = list.excluded;
           return ncclCommShrink(r.comm, &excluded, list.count, &child, nullptr, NCCL_SHRINK_DEFAULT);
         }});
  }
  rows.push_back({"CommShrink", "newcomm", "NULL", kArgument, By::all, [](const Rank& r, auto&) {
                    int excluded = 1 - r.rank;
                    return ncclCommShrink(r.comm, &excluded, 1, nullptr, nullptr, NCCL_SHRINK_DEFAULT);
                  }});
}

void addRevoke(std::vector<WrongCall>& rows) {
#ifdef NCCL_REVOKE_DEFAULT
  rows.push_back({"CommRevoke", "revokeFlags", "5", kArgument, By::all,
                  [](const Rank& r, auto&) { return ncclCommRevoke(r.comm, 5); }});
#else
  (void)rows;
#endif
}

void addSimulation(std::vector<WrongCall>& rows) {
  rows.push_back({"GroupSimulateEnd", "simInfo", "not initialized", kArgument, By::all, [](auto&, auto&) {
                    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
                    info.magic = 1;
                    check(ncclGroupStart(), "ncclGroupStart");
                    return ncclGroupSimulateEnd(&info);
                  }});
}

}  // namespace

std::vector<WrongCall> wrongCalls() {
  std::vector<WrongCall> rows;
  addProcess(rows);
  addJoining(rows);
  addConfig(rows);
  addInitAll(rows);
  addQuestion(rows, "CommCount", "count", ncclCommCount);
  addQuestion(rows, "CommCuDevice", "device", ncclCommCuDevice);
  addQuestion(rows, "CommUserRank", "rank", ncclCommUserRank);
  addQuestion(rows, "CommGetAsyncError", "asyncError", asyncError);
  addEnds(rows);
  addRegistration(rows);
  addOperators(rows);
  addSubgroups(rows);
  addRevoke(rows);
  addSimulation(rows);
  return rows;
}

}  // namespace conformance

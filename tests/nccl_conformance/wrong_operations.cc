#include "tests/nccl_conformance/arguments.h"

namespace conformance {
namespace {

/// The arguments of a collective or transfer, right ones at first.
struct Arguments {
  const void* send;
  void* recv;
  std::size_t count = 10;
  int type = ncclFloat;
  ncclRedOp_t op = ncclSum;
  int root = 0;  ///< or peer
  ncclComm_t comm;
  cudaStream_t stream;
};

using Issue = ncclResult_t (*)(Collective, const Arguments&);
using Change = std::function<void(Arguments&, const Rank&, const Props&)>;

struct Function {
  std::string name;
  Issue issue;
  Collective collective;  ///< of those that are one
  bool reduces;
  const char* root;  ///< what it calls the rank that it names, or NULL
  const char* send;  ///< what it calls its buffers, where rank 0 must have them, or NULL
  const char* recv;
};

[[gnu::no_sanitize("enum")]] ncclResult_t issueCollective(Collective collective, const Arguments& a) {
  const Type type{enumerator<ncclDataType_t>(a.type), "", 0, false};
  return issue({.collective = collective, .type = &type, .root = a.root, .count = a.count}, a.op, a.send,
               a.recv, a.comm, a.stream);
}
ncclResult_t issueSend(Collective, const Arguments& a) {
  return ncclSend(a.send, a.count, enumerator<ncclDataType_t>(a.type), a.root, a.comm, a.stream);
}
ncclResult_t issueRecv(Collective, const Arguments& a) {
  return ncclRecv(a.recv, a.count, enumerator<ncclDataType_t>(a.type), a.root, a.comm, a.stream);
}

std::vector<Function> functions() {
  std::vector<Function> result{
      {"Send", issueSend, Collective::broadcast, false, "peer", "sendbuff", nullptr},
      {"Recv", issueRecv, Collective::broadcast, false, "peer", nullptr, "recvbuff"},
  };
  for (int number = 0; number <= static_cast<int>(Collective::scatter); ++number) {
    const Call call{.collective = static_cast<Collective>(number)};
    const bool is_bcast = call.collective == Collective::bcast;
    result.push_back({kCollectiveNames[number], issueCollective, call.collective, call.reduces(),
                      call.hasRoot() ? "root" : nullptr, is_bcast ? nullptr : "sendbuff",
                      is_bcast ? "buff" : "recvbuff"});
  }
  return result;
}

class Table {
 public:
  explicit Table(std::vector<WrongCall>& rows) : rows_(rows) {}

  void add(const Function& f, const char* argument, const std::string& value, By by, const Change& change) {
    rows_.push_back(
        {f.name, argument, value, ncclInvalidArgument, by, [f, change](const Rank& rank, const Props& props) {
           Arguments a{.send = props.data, .recv = props.other, .comm = rank.comm, .stream = rank.stream};
           change(a, rank, props);
           return f.issue(f.collective, a);
         }});
  }

 private:
  std::vector<WrongCall>& rows_;
};

/// Each rank is the root: others need no buffers of some.
void addBuffers(Table& table, const Function& f) {
  if (f.send != nullptr) {
    table.add(f, f.send, "NULL", By::tutti, [](auto& a, const Rank& rank, auto&) {
      a.send = nullptr;
      a.root = rank.rank;
    });
  }
  if (f.recv != nullptr) {
    table.add(f, f.recv, "NULL", By::tutti, [](auto& a, const Rank& rank, auto&) {
      a.recv = nullptr;
      a.root = rank.rank;
    });
  }
  if (f.send == nullptr || f.recv == nullptr) return;
  table.add(f, "overlap", "one element apart", By::tutti, [](auto& a, const Rank& rank, const Props& props) {
    a.recv = static_cast<char*>(props.data) + sizeof(float);
    a.root = rank.rank;
  });
}

void addEnumerators(Table& table, const Function& f) {
  for (const int value : {-1, static_cast<int>(ncclNumTypes), 1 << 20}) {
    table.add(f, "datatype", std::to_string(value), By::all,
              [value](auto& a, auto&, auto&) { a.type = value; });
  }
  if (!f.reduces) return;
  for (const int value : {-1, static_cast<int>(ncclNumOps) + 1000, 1 << 20}) {
    table.add(f, "op", std::to_string(value), By::all,
              [value](auto& a, auto&, auto&) { a.op = enumerator<ncclRedOp_t>(value); });
  }
  table.add(f, "op", "that was destroyed", By::all,
            [](auto& a, auto&, const Props& props) { a.op = props.destroyed_op; });
  table.add(f, "op", "of another type", By::all,
            [](auto& a, auto&, const Props& props) { a.op = props.of_double; });
}

}  // namespace

std::vector<WrongCall> wrongOperations(int nranks) {
  std::vector<WrongCall> rows;
  Table table(rows);
  for (const Function& f : functions()) {
    table.add(f, "comm", "NULL", By::all, [](auto& a, auto&, auto&) { a.comm = nullptr; });
    table.add(f, "comm", "destroyed", By::tutti,
              [](auto& a, auto&, const Props& props) { a.comm = props.dead; });
    addEnumerators(table, f);
    for (const int value : {-1, nranks, 1 << 30}) {
      if (f.root == nullptr) break;
      table.add(f, f.root, std::to_string(value), By::all,
                [value](auto& a, auto&, auto&) { a.root = value; });
    }
    table.add(f, "count", "2^62", By::tutti, [](auto& a, auto&, auto&) { a.count = std::size_t{1} << 62; });
    addBuffers(table, f);
  }
  return rows;
}

}  // namespace conformance

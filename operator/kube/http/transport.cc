#include "operator/kube/http/transport.h"

namespace muster::kube {

const char* name_of(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::patch:
      return "PATCH";
    case Method::remove:
      return "DELETE";
  }
  return "";
}

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::waiting:
      return "waiting";
    case Phase::connecting:
      return "connecting";
    case Phase::answering:
      return "answering";
    case Phase::reading:
      return "reading";
    case Phase::done:
      return "done";
  }
  return "";
}

}  // namespace muster::kube

#include "trainer/loop/evaluation/patient_reader.h"

#include <string>
#include <utility>

#include "common/error.h"
#include "common/program/log.h"
#include "common/system/file.h"

namespace muster::loop {

bool PatientReader::attempt(const std::function<void()>& look) {
  try {
    look();
    patience_.rest();
  } catch (const WriteError& error) {
    if (!patience_.wait(error)) throw;
    return false;
  } catch (const Unavailable& error) {
    if (!std::exchange(told_, true))
      log::warning(std::string("the storage is tried again: ") + error.what());
    return false;
  }
  if (std::exchange(told_, false)) log::info("the storage can be read again");
  return true;
}

}  // namespace muster::loop

# shellcheck shell=bash
# Processes that outlive the script that starts them, known by a name within a folder: sourced by the scripts
# beside. FOLDER/NAME.log has what one writes, FOLDER/NAME.pid its id and when it began, so that a process
# which has got an old id since is never taken for it.

# The time at which a process began, in the kernel's ticks; fails if there is none, or only its corpse. A process
# whose first thread has ended still has its ports until its other threads (field 20) have ended too.
start_time() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return
  read -ra stat <<<"${stat##*) }"
  { [ "${stat[0]}" != Z ] || [ "${stat[17]}" -gt 1 ]; } && echo "${stat[19]}"
}

# start_process FOLDER NAME COMMAND...
start_process() {
  local folder=$1 name=$2 pid
  shift 2
  setsid "$@" >>"$folder/$name.log" 2>&1 </dev/null 9>&- &
  pid=$!
  echo "$pid $(start_time $pid)" >"$folder/$name.pid"
}

# The id of a process that runs; fails if it does not.
process_id() {
  local pid began
  read -r pid began 2>/dev/null <"$1/$2.pid" || return
  [ -n "$began" ] && [ "$(start_time "$pid")" = "$began" ] && echo "$pid"
}

# end_process FOLDER NAME [SIGNAL]: returns when it has ended; well if there was none.
end_process() {
  local pid
  if pid=$(process_id "$1" "$2"); then
    kill "-${3:-TERM}" "$pid" 2>/dev/null || true
    while process_id "$1" "$2" >/dev/null; do sleep 0.02; done
  fi
  rm -f "$1/$2.pid"
}

# await SECONDS WHAT COMMAND...: until the command succeeds.
await() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $until ]; then
      echo "$(basename "$0"): expected $what, and waited in vain" >&2
      return 1
    fi
    sleep 0.1
  done
}

# free_ports N: ports of 127.0.0.1 at which nobody listens, below those that the kernel gives to outgoing
# connections.
free_ports() {
  local port
  for port in $(shuf -i 20000-31999 -n 100); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || echo "$port"
  done | head -n "$1"
}

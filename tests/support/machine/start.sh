#!/bin/sh
# A machine: a real systemd as process 1 of namespaces of its own, until stdin ends. Needs root, util-linux, systemd.
# usage: unshare --mount --propagation private start.sh FOLDER PYTHON [SOURCE TARGET ...]
#   FOLDER    a new one; takes machine.log, the pid of process 1 and, if that has ended, ended; gone afterwards
#   SOURCE    a folder that the machine sees, read-only, at TARGET
# Its root is an overlay of ours that is thrown away; the network is ours. Its cgroups are children of ours
# in every hierarchy there is, so that nothing of the host's is touched and limits hold as far as they can here.
set -eu
folder=$1
groups=$folder/cgroups
name=${folder##*/}

# ours CONTROLLERS PATH: mounts a hierarchy and makes a group for the machine; prints it
ours() {
  at=$groups/$(echo "${1:-unified}" | tr ',=' '--')
  mkdir -p "$at"
  case $1 in
    '') mount -t cgroup2 cgroup2 "$at" && own=$at/$name ;;
    name=*) mount -t cgroup -o "none,$1" cgroup "$at" && own=$at$2/$name ;;
    *) mount -t cgroup -o "$1" cgroup "$at" && own=$at$2/$name ;;
  esac
  mkdir -p "$own"
  case ,$1, in
    *,cpuset,*) for file in cpuset.cpus cpuset.mems; do cat "$own/../$file" >"$own/$file"; done ;;
    ,,) # refused where version 1 has them, or where they aren't ours to give
      for controller in memory pids cpu; do echo "+$controller" >"$at/cgroup.subtree_control" || true; done 2>/dev/null ;;
  esac
  echo "$own"
}

trap true HUP INT TERM # to the end below, whatever comes
mkdir "$groups" "$folder/tree"
mount -t tmpfs -o mode=755 tmpfs "$groups"
own=$(while IFS=: read -r _ controllers path; do ours "$controllers" "${path%/}"; done </proc/self/cgroup)
(
  for group in $own; do echo 0 >"$group/cgroup.procs"; done
  setpriv --pdeathsig KILL unshare --pid --ipc --uts --cgroup --mount --propagation private --fork --kill-child \
    sh "${0%/*}/inside.sh" "$@" || true
  : >"$folder/ended"
) </dev/null >"$folder/machine.log" 2>&1 &

read -r _ || true # until the tests let go, or have died
exec 2>/dev/null
[ ! -e "$folder/pid" ] || kill -9 "$(cat "$folder/pid")" || true
wait
for group in $own; do find "$group" -depth -type d -exec rmdir {} +; done
umount --recursive "$groups"
rm -rf "$folder"

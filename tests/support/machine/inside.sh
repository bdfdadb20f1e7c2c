#!/bin/sh
# The inside of start.sh: builds the machine's root and becomes its process 1. Same arguments.
set -eu
folder=$1 python=$2
shift 2
tree=$folder/tree
read -r pid _ </proc/self/stat # outside: this /proc is still the host's
echo "$pid" >"$folder/new"
mv "$folder/new" "$folder/pid"
mount -t tmpfs -o size=512m,mode=755 tmpfs "$tree"
mkdir "$tree/upper" "$tree/work" "$tree/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$tree/upper,workdir=$tree/work" "$tree/root"
cd "$tree/root"

# Nothing of the host's own services and qd is there, nor what systemd does for hardware.
rm -rf etc/systemd/system usr/local/lib/systemd usr/local/bin/qd opt/qd var/lib/qd etc/qd etc/credstore etc/*/qd.conf
for wants in lib/systemd/system/*.wants usr/lib/systemd/system/*.wants; do [ ! -d "$wants" ] || rm -rf "$wants"; done
mkdir -p etc/systemd/system etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nRateLimitBurst=0\nAudit=\n' >etc/systemd/journald.conf.d/machine.conf
ln -s /dev/null etc/systemd/system/systemd-journald-audit.socket # the kernel's audit is the host's
cat >etc/systemd/system/machine.target <<'UNIT'
[Unit]
Description=The journal, and nothing else
Requires=systemd-journald.socket systemd-journald-dev-log.socket systemd-journald.service
After=systemd-journald.service
DefaultDependencies=no
UNIT
: >etc/fstab
tr -d - </proc/sys/kernel/random/uuid >etc/machine-id

for place in proc sys dev run tmp opt; do mkdir -p $place; done
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup 2>/dev/null || true
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
for node in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
  mknod -m 666 "dev/${node%% *}" c ${node#* }
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for stream in stdin:0 stdout:1 stderr:2; do ln -s "fd/${stream#*:}" "dev/${stream%:*}"; done

# The hierarchies as systemd expects them: version 2 alone, or beside those of version 1.
if grep -q '^[1-9]' /proc/self/cgroup; then
  while IFS=: read -r _ controllers _; do
    case $controllers in
      '') at=unified type=cgroup2 options=rw ;;
      name=*) at=${controllers#name=} type=cgroup options=none,$controllers ;;
      *) at=$controllers type=cgroup options=$controllers ;;
    esac
    mkdir "sys/fs/cgroup/$at"
    mount -t "$type" -o "$options" cgroup "sys/fs/cgroup/$at"
  done </proc/self/cgroup
  [ -d sys/fs/cgroup/systemd ] || { mkdir sys/fs/cgroup/systemd && mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd; }
else
  mount -t cgroup2 cgroup2 sys/fs/cgroup
fi

while [ $# -ge 2 ]; do
  mkdir -p ".$2"
  mount --bind "$1" ".$2"
  mount -o remount,bind,ro ".$2"
  shift 2
done

exec "$python" -I "${0%/*}/becomes_root.py"

package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// unlimited is the value from which on a memory limit of cgroups version 1 means no limit.
const unlimited = 1 << 62

// groups returns the folders of the cgroup of the process and of that cgroup's ancestors: in the
// hierarchy of a controller of cgroups version 1, such as cpu, or of version 2 if controller is "".
// An environment reads the files of the machine, or in tests those of a folder in its place. Its
// read returns "" for a file that cannot be read.
func (e environment) groups(controller string) []string {
	var out []string
	for line := range strings.Lines(e.read("/proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if !slices.Contains(strings.Split(fields[1], ","), controller) {
			continue
		}
		base := "/sys/fs/cgroup"
		if controller != "" {
			base += "/" + fields[1]
			// The folder of the controllers cpu,cpuacct may be named cpu.
			if e.read(base+"/cgroup.procs") == "" && controller == "cpu" {
				base = "/sys/fs/cgroup/cpu"
			}
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			out = append(out, path.Join(base, group))
			if group == "/" {
				break
			}
		}
	}
	return out
}

// quota returns the processor time that the cgroups grant, in cores; 0: no limit. A quota is a time
// in each period, both in microseconds; "max" or -1 is no limit.
func (e environment) quota() float64 {
	least := 0.0
	add := func(quota, period string) {
		q, err := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err == nil && err2 == nil && q > 0 && p > 0 && (least == 0 || q/p < least) {
			least = q / p
		}
	}
	for _, g := range e.groups("") {
		if f := strings.Fields(e.read(g + "/cpu.max")); len(f) == 2 {
			add(f[0], f[1])
		}
	}
	for _, g := range e.groups("cpu") {
		add(e.read(g+"/cpu.cfs_quota_us"), e.read(g+"/cpu.cfs_period_us"))
	}
	return least
}

// cgroupMemory returns the memory limit of the cgroups in bytes; 0: no limit.
func (e environment) cgroupMemory() int64 {
	var least int64
	add := func(text string) {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && v > 0 && v < unlimited && (least == 0 || v < least) {
			least = v
		}
	}
	for _, g := range e.groups("") {
		add(e.read(g + "/memory.max"))
	}
	for _, g := range e.groups("memory") {
		add(e.read(g + "/memory.limit_in_bytes"))
	}
	return least
}

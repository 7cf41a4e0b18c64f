// Package machine returns the numbers of cores and of bytes of memory that this process may use,
// within the allocation of a scheduler, a container or an affinity mask, and what it has used.
//
// A job with 4 cores on a node of 128 must not start 128 threads, and a job that fills the memory
// of the node is killed. So programs must observe the limits of the process, not the size of the
// machine.
//
// The package also sets how much garbage Go's collector allows, asks the system for huge pages, and
// returns the command that installs a library.
package machine

import (
	"cmp"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Cores returns the number of cores that this process may use, at least 1: the least of the
// affinity mask, GOMAXPROCS, the cgroup quota (rounded up) and what Slurm gives each task.
func Cores() int { return cores(environment{}) }

// MemoryLimit returns the memory limit in bytes: the lesser of the cgroup limit and what Slurm
// gives the task; 0: no limit.
func MemoryLimit() int64 { return memoryLimit(environment{}) }

// An environment is the source of the limits. The zero value is that of the process.
type environment struct {
	root string            // folder in place of the root of the file system
	env  map[string]string // environment variables; nil: those of the process
	cpus int               // number of cores in the affinity mask; 0: that of the process
}

// read returns the text of a file without white space around it; "" if it cannot be read.
func (e environment) read(path string) string {
	raw, err := os.ReadFile(e.root + path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// get returns the value of an environment variable; "" if it is not set.
func (e environment) get(name string) string {
	if e.env != nil {
		return e.env[name]
	}
	return os.Getenv(name)
}

// number returns the value of an environment variable as a number; 0 if it is not a number from 0
// to 2^32.
func (e environment) number(name string) int64 {
	v, err := strconv.ParseInt(strings.TrimSpace(e.get(name)), 10, 64)
	if err != nil || v < 0 || v > 1<<32 {
		return 0
	}
	return v
}

func cores(e environment) int {
	n := cmp.Or(e.cpus, min(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	if q := e.quota(); q > 0 { // the cgroup's, in cores; 0: none
		n = min(n, int(math.Ceil(q)))
	}
	if slurm := e.number("SLURM_CPUS_PER_TASK"); slurm > 0 {
		n = min(n, int(slurm))
	}
	return max(1, n)
}

func memoryLimit(e environment) int64 {
	limit := e.cgroupMemory() // 0: none
	add := func(v int64) {
		if v > 0 && (limit == 0 || v < limit) {
			limit = v
		}
	}
	add(e.number("SLURM_MEM_PER_NODE") << 20) // Slurm counts in MiB
	if per := e.number("SLURM_MEM_PER_CPU"); per > 0 {
		add(per << 20 * max(1, e.number("SLURM_CPUS_PER_TASK")))
	}
	return limit
}

// statusBytes returns the value of a key in the text of a file such as /proc/meminfo, converted
// from KiB to bytes; 0 if there is none.
func statusBytes(status, key string) int64 {
	_, rest, ok := strings.Cut(status, key)
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

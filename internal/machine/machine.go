// Package machine says what this process may use of the machine: cores and memory within the allocation that a scheduler,
// a container or an affinity mask grants, and what it has used.
//
// A job of 4 cores on a node of 128 that starts 128 threads is slower than one of 4, and one that fills the node's memory
// is killed. So nothing here asks what the machine has.
package machine

import (
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Cores is how many threads are worth starting: the least of the affinity mask, a cgroup's quota of processor time, and
// what Slurm gives each task.
func Cores() int { return cores(environment{}) }

// MemoryLimit is the bytes that the process may hold before it is killed: the least of a cgroup's limit and of what Slurm
// gives the task; 0 where nothing bounds it.
func MemoryLimit() int64 { return memoryLimit(environment{}) }

// An environment is what an allocation is read from: the zero one is that of the process.
type environment struct {
	root string // of the file system
	env  map[string]string
	cpus int // of the affinity mask
}

func (e environment) read(path string) string {
	raw, err := os.ReadFile(e.root + path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

func (e environment) get(name string) string {
	if e.env != nil {
		return e.env[name]
	}
	return os.Getenv(name)
}

// number is a variable's value as a positive number, 0 where it is none.
func (e environment) number(name string) int64 {
	v, err := strconv.ParseInt(strings.TrimSpace(e.get(name)), 10, 64)
	if err != nil || v < 0 || v > 1<<32 {
		return 0
	}
	return v
}

func cores(e environment) int {
	n := e.cpus
	if n == 0 {
		n = min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	}
	if q := e.quota(); q > 0 {
		n = min(n, int(math.Ceil(q)))
	}
	if slurm := e.number("SLURM_CPUS_PER_TASK"); slurm > 0 {
		n = min(n, int(slurm))
	}
	return max(1, n)
}

func memoryLimit(e environment) int64 {
	limit := e.cgroupMemory()
	add := func(v int64) {
		if v > 0 && (limit == 0 || v < limit) {
			limit = v
		}
	}
	add(e.number("SLURM_MEM_PER_NODE") << 20)
	if per := e.number("SLURM_MEM_PER_CPU"); per > 0 {
		add(per << 20 * max(1, e.number("SLURM_CPUS_PER_TASK")))
	}
	return limit
}

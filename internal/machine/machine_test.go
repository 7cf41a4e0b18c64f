package machine

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// newEnvironment returns an environment with the given number of processors, environment variables
// and files in /proc and /sys.
func newEnvironment(t *testing.T, cpus int, env map[string]string, files map[string]string) environment {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if env == nil {
		env = map[string]string{}
	}
	return environment{root: root, env: env, cpus: cpus}
}

// TestAllocations checks the cores and the memory (bytes; 0: no limit) that Slurm or cgroups grant
// a process. Its affinity mask, the processors on which it may run, has 64.
func TestAllocations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env    map[string]string
		files  map[string]string
		cores  int
		memory int64
	}{
		"no limit":                           {nil, nil, 64, 0},
		"Slurm":                              {map[string]string{"SLURM_CPUS_PER_TASK": "4", "SLURM_MEM_PER_NODE": "2048"}, nil, 4, 2 << 30},
		"Slurm, memory for each core":        {map[string]string{"SLURM_CPUS_PER_TASK": "4", "SLURM_MEM_PER_CPU": "512"}, nil, 4, 2 << 30},
		"Slurm, more than the affinity mask": {map[string]string{"SLURM_CPUS_PER_TASK": "128"}, nil, 64, 0},
		"Slurm, invalid values":              {map[string]string{"SLURM_CPUS_PER_TASK": "many", "SLURM_MEM_PER_NODE": "-1"}, nil, 64, 0},
		"cgroups version 2, the limits of the parent": {nil, map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max":      "150000 100000",
			"sys/fs/cgroup/a/b/cpu.max":    "max 100000",
			"sys/fs/cgroup/a/memory.max":   "1073741824",
			"sys/fs/cgroup/a/b/memory.max": "max",
		}, 2, 1 << 30},
		"cgroups version 2, half a core": {nil, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000"}, 1, 0},
		"cgroups version 1": {nil, map[string]string{
			"proc/self/cgroup":                                "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n",
			"sys/fs/cgroup/cpu,cpuacct/cgroup.procs":          "1",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "300000",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":      "-1",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":     "100000",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes":  "536870912",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      "9223372036854771712",
		}, 3, 512 << 20},
		"invalid files": {nil, map[string]string{"proc/self/cgroup": "::\nx\n0::/a\n", "sys/fs/cgroup/a/cpu.max": "x y", "sys/fs/cgroup/a/memory.max": "lots"}, 64, 0},
	} {
		e := newEnvironment(t, 64, c.env, c.files)
		if got := cores(e); got != c.cores {
			t.Errorf("%s: %d cores, want %d", name, got, c.cores)
		}
		if got := memoryLimit(e); got != c.memory {
			t.Errorf("%s: %d bytes, want %d", name, got, c.memory)
		}
	}
}

func TestThisProcess(t *testing.T) {
	if n := Cores(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("Cores returns %d, want 1 to %d", n, runtime.NumCPU())
	}
	held := make([]byte, 64<<20) // written below, so that it is in memory
	for i := range held {
		held[i] = 1
	}
	if p := PeakMemory(); p < 64<<20 {
		t.Errorf("the peak is %d bytes while 64 MiB are held", p)
	}
	runtime.KeepAlive(held)
}

func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	const meminfo, status = "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n", "Name: x\nVmRSS: 1048576 kB\n"
	noLimit := map[string]string{"proc/self/cgroup": "0::/\n", "proc/meminfo": meminfo, "proc/self/status": status}
	limited := func(limit string) map[string]string {
		files := map[string]string{"sys/fs/cgroup/memory.max": limit}
		maps.Copy(files, noLimit)
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // seven eighths of what is free or left of the limit; 0: not known; 1: nothing is left
	}{
		"not known":                    {nil, 0},
		"no limit":                     {noLimit, 7 << 30},
		"a limit above the memory":     {limited("17179869184"), 7 << 30},
		"a limit of 3 GiB, 1 GiB used": {limited("3221225472"), 7 << 28},
		"a limit that is exceeded":     {limited("536870912"), 1},
	} {
		if got := availableMemory(newEnvironment(t, 4, nil, c.files)); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
)

// TestProfile checks the parsing of profiles: the settings of a cluster, with which jobs are
// submitted.
func TestProfile(t *testing.T) {
	t.Parallel()
	p, err := ParseProfile("p.yaml", []byte("partition: gpu\ntime: 1-12:00:00\nmemory: 8GiB\nmodules: [gcc/12, cuda]\nwarning: 90s\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Partition != "gpu" || time.Duration(p.Time) != 36*time.Hour || p.Memory != 8<<30 || len(p.Modules) != 2 || p.CPUs != 4 || p.Tries != 3 || p.Device != "cpu" {
		t.Errorf("the profile is %+v, want the values of the file, 4 CPUs, 3 tries and the device cpu", p)
	}
	// Profiles with one mistake each, and what the error says.
	for text, want := range map[string]string{
		"partitoin: gpu":               "partition",  // the suggested key
		"time: soon":                   "p.yaml:1:7", // line 1, column 7
		"time: 0:00":                   "not a duration",
		"partition: \"a\\nb\"":         "partition",
		"partition: \"x; rm -rf /\"":   "not a name",
		"gpus: all":                    "gpus",
		"cpus-per-task: 0":             "cpus-per-task",
		"environment: {\"a b\": c}":    "variable",
		"setup: [\"a\\nb\"]":           "one line",
		"directives: [exclusive]":      "sbatch",
		"kubernetes: {image: \"a b\"}": "image",
		"kubernetes: {imagename: a}":   "image",
		"- partition":                  "mapping",
		"memory: -1":                   "size",
	} {
		if _, err := ParseProfile("p.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestDefaultProfileFile checks that LoadProfile("") reads noether/cluster.yaml in the user's
// configuration folder, if that file exists.
func TestDefaultProfileFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	p, err := LoadProfile("")
	if err != nil || p.CPUs != 4 { // the default
		t.Fatalf("the profile is %+v, error %v; want 4 CPUs", p, err)
	}
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(config, "noether"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "noether", "cluster.yaml"), []byte("account: physics\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if p, err = LoadProfile(""); err != nil || p.Account != "physics" {
		t.Errorf("the profile is %+v, error %v; want the account physics", p, err)
	}
	if _, err := LoadProfile(filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("a missing profile is accepted")
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "2h30m": 150 * time.Minute, "10:30": 10*time.Minute + 30*time.Second,
		"3:00:00": 3 * time.Hour, "2-06:00": 54 * time.Hour, "1-00:00:01": 24*time.Hour + time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || time.Duration(got) != want {
			t.Errorf("ParseDuration(%q) = %v, want %v; error %v", text, got, want, err)
		}
	}
	for _, text := range []string{"", "5", "-1h", "1e9h", "400-00:00:00", "1:2:3:4", "one hour", "99999:00"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
	// Slurm's format, days-hours:minutes:seconds, rounded up to whole minutes.
	for d, want := range map[time.Duration]string{time.Second: "0-00:01:00", 25*time.Hour + time.Second: "1-01:01:00"} {
		if got := slurmDuration(d); got != want {
			t.Errorf("slurmDuration(%v) = %s, want %s", d, got, want)
		}
	}
}

// FuzzProfile checks that no value of a valid profile adds a line to the header of the batch
// script, which has one option of sbatch on each line.
func FuzzProfile(f *testing.F) {
	f.Add("partition: gpu\ntime: 2h\n")
	f.Add("environment: {A: 'x'}\nsetup: [a, b]\nkubernetes: {image: x, claim: y, mount: /z}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseProfile("p.yaml", []byte(text))
		if err != nil {
			return
		}
		// /run is the folder of its results.
		s := &Submission{Number: 1, Profile: p, Tasks: []Task{{Models: []string{"m"}, Shard: study.Shard{Index: 1, Count: 2}}}}
		script, _, err := Slurm{}.Scripts("/run", "study", s)
		if err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(script, "\n\n")
		for i, line := range strings.Split(header, "\n") {
			if i > 0 && !strings.HasPrefix(line, "#SBATCH -") || strings.ContainsRune(line, '\r') {
				t.Errorf("line %d of the header is %q, want one option of sbatch", i+1, line)
			}
		}
	})
}

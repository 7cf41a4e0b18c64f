//go:build unix

package cluster

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/study"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// exampleSubmission returns a submission, a study divided into tasks. Two of its tasks have half of
// the samples of the model vit each: its shards 1 and 2 of 2. Seconds and Memory are estimates.
func exampleSubmission(t *testing.T) *Submission {
	t.Helper()
	p, err := ParseProfile("p.yaml", []byte(`
partition: cpu
account: vision
cpus-per-task: 8
gpus: 1
device: cuda
throttle: 20
program: /opt/noether/bin/noether
container: apptainer exec --nv noether.sif
modules: [apptainer/1.3]
setup: ["ulimit -c 0"]
environment: {GREETING: "it's $HOME"}
directives: [--exclusive]
`))
	if err != nil {
		t.Fatal(err)
	}
	return &Submission{Number: 1, Scheduler: "slurm", Profile: p, Tasks: []Task{
		{Models: []string{"vit"}, Shard: study.Shard{Index: 1, Count: 2}, Seconds: 3000, Memory: 3 << 30},
		{Models: []string{"vit"}, Shard: study.Shard{Index: 2, Count: 2}, Seconds: 3000, Memory: 3 << 30},
		{Models: []string{"a", "b"}, Seconds: 2800, Memory: 1 << 30},
	}}
}

// TestScripts compares the batch scripts of the tasks and of the merge, which joins their results,
// with golden files. Users read and edit the scripts, so look at each change.
func TestScripts(t *testing.T) {
	t.Parallel()
	// The arguments are the folder of the results, the name of the study and the submission.
	task, merge, err := Slurm{}.Scripts("/shared/runs/big", "Big study", exampleSubmission(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"run.sbatch": task, "merge.sbatch": merge} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("the generated %s differs from its golden file (go test -update accepts it):\n%s", name, got)
		}
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("bash -n rejects %s: %s", path, out)
		}
	}
}

func TestPathsThatSlurmRejects(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"/a%b", "/a\"b", "/a'b", "/a\nb", "/a$b"} {
		if _, _, err := (Slurm{}).Scripts(run, "s", exampleSubmission(t)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want an error of one line", run, err)
		}
	}
}

// TestQuote checks that quote(s) is one shell word equal to s.
func TestQuote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~äß\n\t]{0,20}`).Draw(t, "text")
		out, err := exec.Command("bash", "-c", "printf '%s|' "+quote(text)).Output()
		if err != nil || string(out) != text+"|" {
			t.Fatalf("%q becomes %q, %v", text, out, err)
		}
	})
}

// TestBatchScript runs the batch script with fake noether, scontrol and sleep. A task that is
// killed is started again, with three starts at most in all. One that stops shortly before Slurm's
// time limit, with the exit code 75 for unfinished work, is queued again. The task is number 2 of
// the array job 7. Before it starts a task again, the script sleeps. Where it is killed during that
// time, or told to end, it does not start the task again; a child of the fake noether, which
// outlives it, sends these signals.
func TestBatchScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program string // body of the fake noether; $n is the number of starts so far, this one included
		usr1    bool   // send SIGUSR1, Slurm's warning before the time limit
		want    string // lines that the fake programs write to $log
		code    int    // exit code of the script; 137: the task was killed by SIGKILL (128 + 9), -1: the script was
	}{
		"done":                           {"exit 0", false, "start\n", 0},
		"failed":                         {"exit 1", false, "start\n", 1},
		"killed once":                    {"[ $n = 1 ] && kill -KILL $$; exit 0", false, "start\nstart\n", 0},
		"always killed":                  {"kill -KILL $$", false, "start\nstart\nstart\n", 137},
		"killed with the script":         {"(sleep 0.5; kill -KILL $PPID) & kill -KILL $$", false, "start\n", -1},
		"killed, then out of time":       {"(sleep 0.5; kill -USR1 $PPID) & kill -KILL $$", false, "start\nrequeue 7_2\n", 137},
		"killed, then cancelled":         {"(sleep 0.5; kill -TERM $PPID) & kill -KILL $$", false, "start\n", 137},
		"out of time":                    {"trap 'echo saved >> $log; exit 75' TERM; echo up >> $log; for i in $(seq 2000); do sleep 0.05; done", true, "start\nup\nsaved\nrequeue 7_2\n", 75},
		"finishes on SIGTERM":            {"trap 'exit 0' TERM; echo up >> $log; for i in $(seq 2000); do sleep 0.05; done", true, "start\nup\n", 0},
		"ignores SIGTERM, then finishes": {"trap '' TERM; echo up >> $log; sleep 0.3; exit 0", true, "start\nup\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log := filepath.Join(dir, "log")
			program := filepath.Join(dir, "noether")
			executable(t, program, "log="+log+"\necho start >> $log\nn=$(grep -c start $log)\n"+c.program)
			executable(t, filepath.Join(dir, "scontrol"), "echo $1 $2 >> "+log)
			// After a requeue the script sleeps for 60 s until Slurm ends it. The fake sleep
			// returns at once for 60 s, and passes other times to /bin/sleep.
			executable(t, filepath.Join(dir, "sleep"), "[ $1 = 60 ] || exec /bin/sleep $1")
			s := exampleSubmission(t)
			s.Profile.Program, s.Profile.Container, s.Profile.Modules, s.Profile.GPUs = program, "", nil, ""
			script, _, err := Slurm{}.Scripts(dir, "s", s)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_ARRAY_JOB_ID=7", "SLURM_ARRAY_TASK_ID=2")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.usr1 {
				waitFor(t, "the task to start", func() bool {
					raw, _ := os.ReadFile(log)
					return strings.Contains(string(raw), "up")
				})
				if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
			}
			cmd.Wait()
			if raw, _ := os.ReadFile(log); string(raw) != c.want || cmd.ProcessState.ExitCode() != c.code {
				t.Errorf("output %q, exit code %d; want %q and %d", raw, cmd.ProcessState.ExitCode(), c.want, c.code)
			}
		})
	}
}

func executable(t *testing.T, path, body string) {
	t.Helper()
	// The lock keeps other tests from forking while the file is open for writing. A forked child
	// would inherit the open descriptor, and executing the file would fail with ETXTBSY (text file
	// busy).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+body+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until condition() is true, for at most half a minute.
func waitFor(t *testing.T, event string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timed out waiting for " + event)
		}
	}
}

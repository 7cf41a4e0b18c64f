//go:build linux

package cluster_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/cluster/slurmtest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// threeModels is a study of three models under four rotations. Its data are generated images.
const threeModels = `name: three models
data: [{name: shapes, shapes: {n: 4096, size: 16}}]
models:
  - {name: a, onnx: a.onnx, layers: [conv, penultimate]}
  - {name: b, onnx: b.onnx, layers: [conv, penultimate]}
  - {name: c, onnx: c.onnx, layers: [conv, penultimate]}
transforms: [{name: turn, rotate: {values: [10, 20, 30, 40]}}]
measures: [accuracy, effective-invariance, distance, seis: {interval: false}]
batch: 8
`

// A fixture holds a Slurm cluster, the compiled program and a folder with a study, its models and a
// profile.
type fixture struct {
	slurm        *slurmtest.Cluster
	dir, program string
	env          []string
	want         []scores.Row // the scores of the study without a cluster
}

// TestSlurm runs studies as jobs of a real Slurm cluster, with failures of jobs and of the
// controller.
func TestSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a minute for a real Slurm cluster")
	}
	library, _, err := ort.Find("")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{slurm: slurmtest.Start(t), dir: t.TempDir()}
	f.env = f.slurm.Env("ONNXRUNTIME_LIB="+library, "XDG_CONFIG_HOME="+filepath.Join(f.dir, "config"))
	f.program = filepath.Join(f.dir, "noether")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", f.program, "../../cmd/noether").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"a", "b", "c"} {
		testmodel.Write(t, f.dir, name, testmodel.Options{}) // NAME.onnx, a small random network
	}
	f.write(t, "study.yaml", threeModels)
	f.write(t, "profile.yaml", "cpus-per-task: 1\nsave-every: 100ms\nmemory: 400MiB\ntime: 10m\n")
	whole := filepath.Join(f.dir, "whole")
	f.mustRun(t, "run", filepath.Join(f.dir, "study.yaml"), "-o", whole)
	f.want = readRows(t, whole)

	// First and alone: a controller that is killed may forget jobs that were just submitted.
	t.Run("the controller and the merge are killed", f.controllerAndMergeKilled)
	t.Run("twelve shards, one killed, the controller restarted", func(t *testing.T) {
		t.Parallel()
		f.twelveShards(t)
	})
	t.Run("out of memory, with a model that does not load", func(t *testing.T) {
		t.Parallel()
		f.outOfMemory(t)
	})
	t.Run("out of time, then cancelled", func(t *testing.T) {
		t.Parallel()
		f.outOfTime(t)
	})
	t.Run("a merge that is cancelled", func(t *testing.T) {
		t.Parallel()
		f.mergeCancelled(t)
	})
}

// twelveShards runs twelve tasks, one of which is killed, and restarts the controller.
func (f *fixture) twelveShards(t *testing.T) {
	run := filepath.Join(f.dir, "twelve")
	// Without calibration the cost of a model is its parameters times its inputs, which are equal,
	// so each model has four shards. Measured costs would vary, since tests run in parallel.
	s := f.submit(t, "study.yaml", run, "--tasks", "12", "--calibrate", "0s")
	if len(s.Tasks) != 12 || s.Tasks[0].Shard.Count != 4 {
		t.Fatalf("the tasks are %+v, want 12, each one of four shards of a model", s.Tasks)
	}
	if out, code := f.run(t, "cluster", "submit", filepath.Join(f.dir, "study.yaml"), "--slurm", "-o", run); code != 1 || !strings.Contains(out, "queued or running") {
		t.Errorf("submitting twice exits with %d: %s", code, out)
	}
	killed := f.killAfterSave(t, run, s)
	f.slurm.RestartController()
	status := f.await(t, run, "all to be merged", func(s *cluster.Status) bool { return !s.Active() && s.Merge == cluster.Done })
	if status.Count(cluster.Done) != 12 {
		t.Errorf("the tasks are %+v, want 12 done", status.Tasks)
	}
	if task := status.Tasks[killed-1]; task.Start < 2 {
		t.Errorf("task %d was killed and has started %d times, want 2 or more", killed, task.Start)
	}
	f.sameScores(t, run)
	if left, _ := filepath.Glob(filepath.Join(run, "states", "*.log")); len(left) > 0 {
		t.Errorf("states remain: %v", left)
	}
	if out, code := f.run(t, "cluster", "retry", run); code != 0 || !strings.Contains(out, "every task is done") {
		t.Errorf("retrying a finished submission exits with %d: %s", code, out)
	}
	waitUntil(t, "the logs of the killed task and of the merge", func() bool { // the merge is done before it prints the scores
		logs, code := f.run(t, "cluster", "logs", run, "--task", strconv.Itoa(killed), "--merge", "--lines", "1000")
		// 137 is 128 and the number of SIGKILL, 9.
		return code == 0 && strings.Contains(logs, "was killed (exit code 137") && strings.Contains(logs, "scores.csv")
	})
}

// killAfterSave waits until a task has saved a state, kills it by SIGKILL, and returns its number.
func (f *fixture) killAfterSave(t *testing.T, run string, s *cluster.Submission) (killed int) {
	t.Helper()
	waitUntil(t, "a task to save something", func() bool {
		for i, task := range s.Tasks {
			saved, _ := filepath.Glob(filepath.Join(run, "states", "*"+task.Shard.String()+".*.log"))
			state, ok := readTaskFile(run, i+1)
			if ok && state.State == cluster.Running && len(saved) > 0 && syscall.Kill(state.PID, syscall.SIGKILL) == nil {
				killed = i + 1
				return true
			}
		}
		return false
	})
	return killed
}

// outOfMemory runs tasks with too little memory, one of which has a model that does not load. After
// a retry with more memory, only the task of that model is not done.
func (f *fixture) outOfMemory(t *testing.T) {
	f.write(t, "broken.onnx", "no model")
	f.write(t, "with-broken.yaml", strings.Replace(threeModels, "transforms:", "  - {name: broken, onnx: broken.onnx}\ntransforms:", 1))
	run := filepath.Join(f.dir, "memory")
	s := f.submit(t, "with-broken.yaml", run, "--tasks", "6", "--mem", "24MiB") // less than the program itself needs
	// Slurm looks at the memory once a second, and a task can take less, unless it is stopped.
	var held int
	waitUntil(t, "a task to be stopped", func() bool {
		for i := range s.Tasks {
			task, ok := readTaskFile(run, i+1)
			if !ok || task.State != cluster.Running {
				continue
			}
			if stopped(task.PID) { // by an earlier call, so the task can write no other state
				held = i
				return true
			}
			_ = syscall.Kill(task.PID, syscall.SIGSTOP) // an error if the task has just ended
		}
		return false
	})
	// The merge has the same limit: it lists what is missing, or is killed as well.
	status := f.await(t, run, "tasks to be killed", func(s *cluster.Status) bool { return !s.Active() })
	// With proctrack/linuxproc, Slurm kills a task's process a moment before the script that started
	// it. In between, the script must not start the task again: no job limits or ends that process.
	if task := status.Tasks[held]; task.State != cluster.Killed || task.Start != 1 {
		t.Fatalf("task %d held its memory and is %s after %d starts, want killed after one: %+v", held+1, task.State, task.Start, status.Tasks)
	}
	if out, _ := f.run(t, "cluster", "logs", run); !strings.Contains(out, "memory limit") {
		t.Errorf("the logs do not say that a task was killed for memory: %s", out)
	}
	if out, code := f.run(t, "cluster", "retry", run, "--mem", "400MiB"); code != 0 {
		t.Fatalf("retrying: %s", out)
	}
	status = f.await(t, run, "the retry to end", func(s *cluster.Status) bool {
		return !s.Active() && s.Merge != cluster.Queued && s.Merge != cluster.Running
	})
	for i, task := range status.Tasks {
		want := cluster.Done
		if slices.Contains(s.Tasks[i].Models, "broken") {
			want = cluster.Failed
		}
		if task.State != want {
			t.Errorf("task %d is %s (%s), want %s", i+1, task.State, task.Note, want)
		}
	}
	if out, code := f.run(t, "merge", run); code != 1 || !strings.Contains(out, "broken") {
		t.Errorf("merging without a model exits with %d: %s", code, out)
	}
	f.sameScores(t, run)
}

// stopAfterSave waits until the first task of a run has saved a state, stops its process by
// SIGSTOP, and returns the task's file.
func stopAfterSave(t *testing.T, run string) (held cluster.TaskState) {
	waitUntil(t, "a task to save something", func() bool {
		saved, _ := filepath.Glob(filepath.Join(run, "states", "*.log"))
		var ok bool
		held, ok = readTaskFile(run, 1)
		return ok && len(saved) > 0 && syscall.Kill(held.PID, syscall.SIGSTOP) == nil
	})
	return held
}

// outOfTime stops a task by SIGSTOP until the warning signal before its time limit is pending. Then
// the task continues, saves its state and queues itself again. Both tasks are cancelled, and a
// retry resumes them.
func (f *fixture) outOfTime(t *testing.T) {
	run := filepath.Join(f.dir, "time")
	f.write(t, "slow.yaml", "warning: 55s\ncpus-per-task: 1\nsave-every: 100ms\nmemory: 400MiB\ntime: 1m\nthrottle: 1\n")
	f.submit(t, "study.yaml", run, "--profile", filepath.Join(f.dir, "slow.yaml"), "--tasks", "2")
	held := stopAfterSave(t, run)
	waitUntil(t, "the warning", func() bool { return pendingTERM(held.PID) })
	if err := syscall.Kill(held.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	status := f.await(t, run, "the task to queue itself again", func(s *cluster.Status) bool {
		return s.Tasks[0].State == cluster.Queued // after it was running
	})
	job := status.Tasks[0].Job
	if out, code := f.run(t, "cluster", "cancel", run); code != 0 {
		t.Fatal(out)
	}
	status = f.await(t, run, "all to be cancelled", func(s *cluster.Status) bool { return !s.Active() })
	if n := status.Count(cluster.Cancelled); n == 0 || n+status.Count(cluster.Done) != 2 {
		t.Errorf("after cancelling, the tasks are %+v, want both cancelled or done, and not both done", status.Tasks)
	}
	if out, code := f.run(t, "cluster", "retry", run, "--time", "10m"); code != 0 {
		t.Fatal(out)
	}
	status = f.await(t, run, "all to be merged", func(s *cluster.Status) bool { return s.Merge == cluster.Done && !s.Active() })
	if status.Tasks[0].Job == job || status.Tasks[0].Start < 2 {
		t.Errorf("the delayed task is %+v, want one that started again in another job than %s", status.Tasks[0], job)
	}
	f.sameScores(t, run)
}

// mergeCancelled cancels the job that merges the shards. A retry submits it again.
func (f *fixture) mergeCancelled(t *testing.T) {
	run := filepath.Join(f.dir, "merge")
	s := f.submit(t, "study.yaml", run, "--tasks", "2", "--calibrate", "0s")
	f.slurm.Run("scancel", s.Jobs[0].Merge)
	if out, code := f.run(t, "cluster", "wait", run, "--every", "1s"); code != 1 || !strings.Contains(out, "the merge has ended without all scores") {
		t.Errorf("waiting for a cancelled merge exits with %d: %s", code, out)
	}
	if out, code := f.run(t, "cluster", "status", run); code != 0 || !strings.Contains(out, "merge: cancelled") && !strings.Contains(out, "merge: lost") {
		t.Errorf("the status exits with %d: %s", code, out)
	}
	if out, code := f.run(t, "cluster", "retry", run); code != 0 || !strings.Contains(out, "submitted the merge as job") {
		t.Errorf("retrying exits with %d: %s", code, out)
	}
	if out, code := f.run(t, "cluster", "wait", run, "--every", "1s"); code != 0 || !strings.Contains(out, "merge: done") {
		t.Errorf("waiting again exits with %d: %s", code, out)
	}
	f.sameScores(t, run)
}

// controllerAndMergeKilled kills the controller while a task runs, then the merge. A retry submits
// the merge again.
func (f *fixture) controllerAndMergeKilled(t *testing.T) {
	run := filepath.Join(f.dir, "killed merge")
	s := f.submit(t, "study.yaml", run, "--tasks", "2", "--calibrate", "0s")
	held := stopAfterSave(t, run)
	time.Sleep(7 * time.Second) // the controller saves its list of jobs at least every five seconds
	f.slurm.KillController()
	if err := syscall.Kill(held.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	killed := false
	waitUntil(t, "the merge to run", func() bool {
		// The process that works, then the one that waits for it: see package supervise.
		for _, pid := range slices.Backward(processesOf("merge", run)) {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
		}
		return killed
	})
	if out, code := f.run(t, "cluster", "wait", run, "--every", "1s"); code != 1 || !strings.Contains(out, "the merge has ended without all scores") {
		t.Errorf("waiting for a killed merge exits with %d: %s", code, out)
	}
	status := f.await(t, run, "the status of the merge to be ended", func(s *cluster.Status) bool { return !s.Active() })
	if status.Merge == cluster.Done || status.Merge == cluster.Running || status.Merge == cluster.Queued {
		t.Errorf("the merge that was killed is %s, want one that has ended", status.Merge)
	}
	if status.Count(cluster.Done) != len(s.Tasks) {
		t.Errorf("the tasks are %+v, want all done", status.Tasks)
	}
	if out, code := f.run(t, "cluster", "retry", run); code != 0 || !strings.Contains(out, "submitted the merge as job") {
		t.Errorf("retrying exits with %d: %s", code, out)
	}
	if out, code := f.run(t, "cluster", "wait", run, "--every", "1s"); code != 0 || !strings.Contains(out, "merge: done") {
		t.Errorf("waiting again exits with %d: %s", code, out)
	}
	f.sameScores(t, run)
}

// processesOf returns the processes of noether that run a command on a run folder, in the order of
// their start.
func processesOf(command, run string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		args := strings.Split(string(raw), "\x00")
		if len(args) > 2 && filepath.Base(args[0]) == "noether" && args[1] == command && args[2] == run {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// pendingTERM reports whether SIGTERM is pending for a stopped process.
func pendingTERM(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return true // the process has ended; the test will report that
	}
	for line := range strings.Lines(string(raw)) {
		if mask, ok := strings.CutPrefix(line, "ShdPnd:"); ok { // pending signals of the process, a hexadecimal mask
			bits, _ := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return bits&(1<<(uint(syscall.SIGTERM)-1)) != 0
		}
	}
	return false
}

// stopped reports whether a process is stopped, as by SIGSTOP.
func stopped(pid int) bool {
	raw, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return bytes.Contains(raw, []byte("\nState:\tT"))
}

func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// run runs the program and returns its output and its exit code.
func (f *fixture) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), f.program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = f.env, &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func (f *fixture) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, code := f.run(t, args...)
	if code != 0 {
		t.Fatalf("noether %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// submit submits a study to Slurm, with profile.yaml unless more has another --profile.
func (f *fixture) submit(t *testing.T, study, run string, more ...string) *cluster.Submission {
	t.Helper()
	args := append([]string{"cluster", "submit", filepath.Join(f.dir, study), "--slurm", "-o", run, "--profile", filepath.Join(f.dir, "profile.yaml")}, more...)
	f.mustRun(t, args...)
	r, err := cluster.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Submission(0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await waits until the status of a submission meets a condition.
func (f *fixture) await(t *testing.T, run, what string, condition func(*cluster.Status) bool) *cluster.Status {
	t.Helper()
	var s *cluster.Status
	waitUntil(t, what, func() bool {
		time.Sleep(200 * time.Millisecond) // each query costs time
		cmd := exec.CommandContext(t.Context(), f.program, "cluster", "status", run, "--json")
		cmd.Env = f.env
		raw, err := cmd.Output()
		if err != nil {
			return false // the controller is being restarted
		}
		s = new(cluster.Status)
		if err := json.Unmarshal(raw, s); err != nil {
			t.Fatal(err)
		}
		return condition(s)
	}, func() any { raw, _ := json.MarshalIndent(s, "", " "); return string(raw) })
	return s
}

// waitUntil waits up to three minutes until a condition is met. If it is not, the test fails, and
// logs what details return.
func waitUntil(t *testing.T, what string, condition func() bool, details ...func() any) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			for _, d := range details {
				t.Log(d())
			}
			t.Fatalf("timeout waiting for %s", what)
		}
	}
}

// readTaskFile reads the state that a task of the first submission has written.
func readTaskFile(run string, number int) (s cluster.TaskState, ok bool) {
	raw, err := os.ReadFile(filepath.Join(run, "cluster", "1", "tasks", strconv.Itoa(number)+".json"))
	return s, err == nil && json.Unmarshal(raw, &s) == nil
}

// readRows returns the rows of scores.csv in a run folder.
func readRows(t *testing.T, run string) []scores.Row {
	t.Helper()
	f, err := os.Open(filepath.Join(run, "scores.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := scores.ReadCSV(f)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows
}

// sameScores compares the scores of a run with those without a cluster, to 1e-6: values, intervals
// and nulls.
func (f *fixture) sameScores(t *testing.T, run string) {
	t.Helper()
	got := readRows(t, run)
	if len(got) != len(f.want) {
		t.Fatalf("%d rows, want %d", len(got), len(f.want))
	}
	same := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 1e-6*max(1, math.Abs(a))
	}
	for i, w := range f.want {
		g := got[i]
		if g.Model != w.Model || g.Measure != w.Measure || g.Layer != w.Layer || g.Parameter != w.Parameter || g.Statistic != w.Statistic || g.N != w.N {
			t.Fatalf("row %d is %+v, want %+v", i, g, w)
		}
		if !same(w.Value, g.Value) || !same(w.Low, g.Low) || !same(w.High, g.High) || !same(w.Null, g.Null) {
			t.Errorf("%s %s of %s %s at %s: %v [%v, %v] null %v, want %v [%v, %v] null %v", w.Measure, w.Statistic, w.Model, w.Layer, w.Parameter,
				g.Value, g.Low, g.High, g.Null, w.Value, w.Low, w.High, w.Null)
		}
	}
}

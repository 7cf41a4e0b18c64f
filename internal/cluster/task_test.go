package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/testmodel"
)

// smallStudy is a study of two models under two rotations. Its data are 300 generated images.
const smallStudy = `name: small
data: [{name: shapes, shapes: {n: 300, size: 16}}]
models:
  - {name: a, onnx: a.onnx, layers: [conv]}
  - {name: b, onnx: b.onnx, layers: [conv]}
transforms: [{name: turn, rotate: {values: [10, 20]}}]
measures: [accuracy, distance]
batch: 16
`

// prepared returns a run folder, which holds the results of a study, with a submission (the study
// divided into tasks), and the options to run the tasks with.
func prepared(t *testing.T, scheduler string, tasks ...Task) (run string, s *Submission, o study.Options) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		testmodel.Write(t, dir, name, testmodel.Options{}) // NAME.onnx, a small random network
	}
	st, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(smallStudy), nil)
	if err != nil {
		t.Fatal(err)
	}
	o = study.Options{Runtime: orttest.Load(t), Threads: 1}
	plan, err := study.NewPlan(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	run = filepath.Join(dir, "run")
	if err := study.Prepare(plan, run, o); err != nil {
		t.Fatal(err)
	}
	p, err := ParseProfile("", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Kubernetes = KubernetesProfile{Image: "noether", Claim: "shared", Mount: dir}
	record, s, err := New(run, st.Name, Submission{Scheduler: scheduler, Profile: p, Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	if err := record.write(run); err != nil {
		t.Fatal(err)
	}
	return run, s, o
}

// smallTasks are a task for the model a, and two for the model b with half of the samples each.
var smallTasks = []Task{{Models: []string{"a"}}, {Models: []string{"b"}, Shard: study.Shard{Index: 1, Count: 2}}, {Models: []string{"b"}, Shard: study.Shard{Index: 2, Count: 2}}}

// TestTasksWithoutScheduler runs the tasks of an Indexed Job of Kubernetes, and then the merge,
// which joins the results of the shards.
func TestTasksWithoutScheduler(t *testing.T) {
	run, s, o := prepared(t, "kubernetes", smallTasks...)
	if err := (Kubernetes{}).Submit(run, &Record{Version: recordVersion, Study: "small", Submissions: []Submission{*s}}, s); err != nil {
		t.Fatal(err)
	}
	if status, err := Find(t.Context(), run, s); err != nil || status.Count(Queued) != 3 || !status.Active() {
		t.Fatalf("before the tasks start, the status is %+v, want 3 queued; error %v", status, err)
	}
	for i := range smallTasks {
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(i))
		// The last submission (0), and the task of which the environment has the index.
		if err := RunTask(t.Context(), run, 0, OwnTask(), o, nil); err != nil {
			t.Fatal(err)
		}
	}
	status, err := Wait(t.Context(), run, s, time.Millisecond)
	if err != nil || status.Count(Done) != 3 || status.Active() {
		t.Fatalf("after the tasks, the status is %+v, want 3 done; error %v", status, err)
	}
	st, err := study.Load(filepath.Join(run, "study.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := study.Merge(t.Context(), st, []string{run}, o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := study.Run(t.Context(), st, filepath.Join(t.TempDir(), "whole"), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != len(want.Rows) {
		t.Fatalf("%d rows, not %d", len(got.Rows), len(want.Rows))
	}
	for i := range want.Rows {
		if d := got.Rows[i].Value - want.Rows[i].Value; d > 1e-6 || d < -1e-6 {
			t.Errorf("row %d: %v, not %v", i, got.Rows[i].Value, want.Rows[i].Value)
		}
	}
	if status, err = Find(t.Context(), run, s); err != nil || status.Merge != Done || status.Done != status.Cells {
		t.Errorf("after the merge, the status is %+v, want all cells done; error %v", status, err)
	}
}

// TestWaitForIncompleteMerge waits for a merge that lacks a cell: the scores of a measure for one
// model, data set, transformation value and trial.
func TestWaitForIncompleteMerge(t *testing.T) {
	t.Parallel()
	run, s, o := prepared(t, "kubernetes", smallTasks...)
	for i := range smallTasks {
		if err := RunTask(t.Context(), run, 0, i+1, o, nil); err != nil {
			t.Fatal(err)
		}
	}
	record := `{"study": "small", "cells": 4, "done": 3, "missing": [{"model": "b", "cells": 1}]}`
	if err := os.WriteFile(filepath.Join(run, "run.json"), []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	status, err := Wait(t.Context(), run, s, time.Millisecond)
	if !errors.Is(err, ErrMergeEnded) || status.Merge != missing {
		t.Errorf("Wait returns %+v, error %v; want a missing merge and ErrMergeEnded", status, err)
	}
}

// TestStoppedTaskResumes stops task 1 of submission 1 after half of its samples, and runs it again.
func TestStoppedTaskResumes(t *testing.T) {
	t.Parallel()
	run, s, o := prepared(t, "kubernetes", smallTasks...)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := o
	stopped.Progress = func(p study.Progress) {
		if p.Done > p.Total/2 {
			cancel()
		}
	}
	if err := RunTask(ctx, run, 1, 1, stopped, nil); !errors.Is(err, ErrStopped) {
		t.Fatalf("a stopped task: error %v, want ErrStopped", err)
	}
	status, err := Find(t.Context(), run, s)
	if one := status.Tasks[0]; err != nil || one.TaskState.State != Stopped || one.State != Queued || !status.Active() {
		t.Fatalf("the first task is %+v, error %v; want a stopped one that is queued again", status.Tasks[0], err)
	}
	// 900: 300 samples, as they are and under two rotations.
	if work := workOf(t, run, o); work[0].Forwards == 0 || work[0].Forwards >= 900 || work[1].Forwards != 900 {
		t.Errorf("the remaining work is %+v, want a part of the first model and 900 samples of the second", work)
	}
	resumed := o
	var total int64
	resumed.Progress = func(p study.Progress) { total = p.Total }
	if err := RunTask(t.Context(), run, 1, 1, resumed, nil); err != nil {
		t.Fatal(err)
	}
	if total == 0 || total >= 900 {
		t.Errorf("%d of 900 samples are left, want fewer: the stopped task saved nothing", total)
	}
	if status, _ = Find(t.Context(), run, s); status.Tasks[0].State != Done || status.Tasks[0].Start != 2 {
		t.Errorf("the first task is %+v, want a second start that is done", status.Tasks[0])
	}
}

// workOf returns the remaining work of a run folder's study.
func workOf(t *testing.T, run string, o study.Options) []study.Work {
	t.Helper()
	st, err := study.Load(filepath.Join(run, "study.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := study.NewPlan(t.Context(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	work, err := study.Remaining(plan, run, o)
	if err != nil {
		t.Fatal(err)
	}
	return work
}

func TestFailedTaskRecordsError(t *testing.T) {
	t.Parallel()
	run, s, o := prepared(t, "kubernetes", smallTasks...)
	if err := os.WriteFile(filepath.Join(filepath.Dir(run), "b.onnx"), []byte("no model"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := RunTask(t.Context(), run, 1, 2, o, nil); err == nil {
		t.Fatal("a task whose model cannot be loaded returns no error")
	}
	if err := RunTask(t.Context(), run, 1, 1, o, nil); err != nil {
		t.Errorf("the task of the other model: %v", err)
	}
	status, err := Find(t.Context(), run, s)
	if err != nil || status.Tasks[1].State != Failed || !strings.Contains(status.Tasks[1].Note, "b.onnx") || status.Tasks[0].State != Done {
		t.Errorf("the tasks are %+v, error %v; want the first done, and the second failed with a note on b.onnx", status.Tasks, err)
	}
	for _, bad := range [][2]int{{1, 0}, {1, 4}, {2, 1}, {-1, 1}} {
		if err := RunTask(t.Context(), run, bad[0], bad[1], o, nil); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("task %d of submission %d: %v", bad[1], bad[0], err)
		}
	}
}

// TestStates checks the states of tasks that follow from the states that tasks write and those of
// the scheduler, either of which may be missing. A running task writes its state every 20 s, its
// heartbeat. Without a scheduler to query, it counts as killed after 15 minutes without one.
func TestStates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	job := []Job{{ID: "7", Tasks: []int{1}, Merge: "8"}}
	running := map[jobTask]jobState{{"7", 1}: {State: "RUNNING"}}
	pending := map[jobTask]jobState{{"7", 1}: {State: "PENDING", Reason: "Priority"}}
	ended := func(string) map[jobTask]jobState { return map[jobTask]jobState{{"7", 1}: {State: "OUT_OF_MEMORY"}} }
	timeout := map[jobTask]jobState{{"7", 1}: {State: "TIMEOUT"}}
	cancelled := &now
	for name, c := range map[string]struct {
		scheduler string
		jobs      []Job
		cancelled *time.Time
		known     map[jobTask]jobState // nil: the scheduler does not answer
		written   string               // state that the task has written; "": none
		ago       time.Duration        // since it was written
		want      string
		note      string
	}{
		"not submitted":                     {"slurm", nil, nil, map[jobTask]jobState{}, "", 0, Lost, "not submitted"},
		"waits":                             {"slurm", job, nil, pending, "", 0, Queued, "Priority"},
		"runs":                              {"slurm", job, nil, running, Running, 0, Running, ""},
		"queued again after a stop":         {"slurm", job, nil, pending, Stopped, 0, Queued, "Priority"},
		"queued again after a failure":      {"slurm", job, nil, pending, Failed, 0, Queued, "Priority"},
		"done and still in the queue":       {"slurm", job, nil, running, Done, 0, Done, ""},
		"killed":                            {"slurm", job, nil, map[jobTask]jobState{}, Running, 0, Killed, "out of memory"},
		"killed, and not yet forgotten":     {"slurm", job, nil, timeout, Running, 0, Killed, "timeout"},
		"killed before its first heartbeat": {"slurm", job, nil, map[jobTask]jobState{}, "", 0, Lost, "out of memory"},
		"stopped":                           {"slurm", job, nil, map[jobTask]jobState{}, Stopped, 0, Stopped, ""},
		"failed":                            {"slurm", job, nil, map[jobTask]jobState{}, Failed, 0, Failed, "because"},
		"cancelled":                         {"slurm", job, cancelled, map[jobTask]jobState{}, Stopped, 0, Cancelled, ""},
		"being cancelled":                   {"slurm", job, cancelled, running, Running, 0, Running, ""},
		"no answer":                         {"slurm", job, nil, nil, "", 0, Unknown, ""},
		"no answer, running":                {"slurm", job, nil, nil, Running, time.Hour, Running, ""},
		"pod not started":                   {"kubernetes", nil, nil, nil, "", 0, Queued, ""},
		"pod that runs":                     {"kubernetes", nil, nil, nil, Running, time.Minute, Running, ""},
		"pod that was evicted":              {"kubernetes", nil, nil, nil, Stopped, time.Minute, Queued, "starts again"},
		"pod that is not restarted":         {"kubernetes", nil, nil, nil, Stopped, time.Hour, Stopped, ""},
		"pod without heartbeat":             {"kubernetes", nil, nil, nil, Running, time.Hour, Killed, "no heartbeat for 1h0m0s"},
	} {
		l := lookup{submission: &Submission{Scheduler: c.scheduler, Jobs: c.jobs, Cancelled: c.cancelled}, known: c.known, ended: ended, endedJobs: map[string]map[jobTask]jobState{}, now: now}
		id := ""
		for _, j := range c.jobs {
			id = j.ID
		}
		task := TaskStatus{Number: 1, TaskState: TaskState{State: c.written}}
		if c.written == Failed {
			task.Error = "because"
		}
		l.setState(&task, id, c.written != "", now.Add(-c.ago))
		if task.State != c.want || !strings.Contains(task.Note, c.note) || c.note == "" && task.Note != "" {
			t.Errorf("%s: %s (%s), not %s (%s)", name, task.State, task.Note, c.want, c.note)
		}
	}
}

// TestMergeStates checks that a merge that has ended without a result does not count as waiting.
// The merge is a job of its own, 8, which starts after the tasks.
func TestMergeStates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	job := []Job{{ID: "7", Tasks: []int{1}, Merge: "8"}}
	none := map[jobTask]jobState{}
	for name, c := range map[string]struct {
		jobs      []Job
		cancelled *time.Time
		known     map[jobTask]jobState
		end       string // the final state that Slurm reports; "": none
		active    bool   // tasks wait or run
		want      string
	}{
		"in the queue":    {job, nil, map[jobTask]jobState{{job: "8"}: {State: "PENDING"}}, "", false, Queued},
		"runs":            {job, nil, map[jobTask]jobState{{job: "8"}: {State: "RUNNING"}}, "", false, Running},
		"after its tasks": {job, nil, none, "", true, "waiting"},
		"no answer":       {job, nil, nil, "", false, "waiting"},
		"not submitted":   {[]Job{{ID: "7", Tasks: []int{1}}}, nil, none, "", false, Lost},
		"lost":            {job, nil, none, "", false, Lost},
		"cancelled":       {job, nil, none, "CANCELLED", false, Cancelled},
		"all cancelled":   {job, &now, none, "", false, Cancelled},
		"killed":          {job, nil, none, "OUT_OF_MEMORY", false, Killed},
		"node failed":     {job, nil, none, "NODE_FAIL", false, Killed},
		"failed":          {job, nil, none, "FAILED", false, Failed},
	} {
		ended := func(string) map[jobTask]jobState {
			return map[jobTask]jobState{{job: "8"}: {State: c.end}}
		}
		l := lookup{submission: &Submission{Scheduler: "slurm", Jobs: c.jobs, Cancelled: c.cancelled}, known: c.known, ended: ended, endedJobs: map[string]map[jobTask]jobState{}}
		if got, note := l.merge(c.active); got != c.want {
			t.Errorf("%s: %s (%s), not %s", name, got, note, c.want)
		}
	}
}

// TestDamagedTaskFiles checks the status if the files with the states of the tasks are empty, cut
// off, or have escape sequences.
func TestDamagedTaskFiles(t *testing.T) {
	t.Parallel()
	run, s, _ := prepared(t, "kubernetes", smallTasks...)
	for i, text := range []string{"", "{", `{"state": "done\u001b[2J", "error": "a\nb\u001b[2J"}`} {
		if err := os.WriteFile(taskFile(run, 1, i+1), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	status, err := Find(t.Context(), run, s)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(status)
	if err != nil || status.Count(Done) != 0 || strings.Contains(string(raw), "u001b[2J\",\"error") {
		t.Errorf("the status is %s, error %v; want no task that is done, and no escape sequence", raw, err)
	}
	for i, task := range status.Tasks[:2] {
		if !strings.Contains(task.Note, "reading "+taskFile(run, 1, i+1)) {
			t.Errorf("the note of a task with a damaged file is %q, want the name of the file", task.Note)
		}
	}
}

// FuzzRecord checks that a record (cluster.json, the submissions of a run folder) that is parsed
// without an error causes no panic and has valid tasks. The second seed has shard 2 of 1.
func FuzzRecord(f *testing.F) {
	raw, err := json.Marshal(Record{Version: 1, Study: "s", Submissions: []Submission{{Number: 1, Scheduler: "slurm",
		Tasks: smallTasks, Jobs: []Job{{ID: "7", Tasks: []int{1, 2, 3}, Merge: "8"}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"version":1,"submissions":[{"number":1,"tasks":[{"models":["a"],"shard":{"index":2,"of":1}}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseRecord(raw)
		if err != nil {
			return
		}
		for i := range r.Submissions {
			s := &r.Submissions[i]
			for n := range s.Tasks {
				if _, err := s.task(n + 1); err != nil {
					t.Error(err)
				}
			}
			l := lookup{submission: s}
			l.merge(false)
			s.memoryRequest()
			s.timeLimit()
		}
	})
}

func TestReadRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "\n") {
		t.Errorf("an empty folder: error %v, want os.ErrNotExist in one line", err)
	}
	// No JSON object; a newer version; a first submission with the number 2; a task without models;
	// a job of a task that does not exist.
	for _, text := range []string{"", "[]", `{"version": 2}`, `{"version":1,"submissions":[{"number":2}]}`, `{"version":1,"submissions":[{"number":1,"tasks":[{}]}]}`,
		`{"version":1,"submissions":[{"number":1,"jobs":[{"id":"1","tasks":[1]}]}]}`} {
		if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if r, err := Read(dir); err == nil || !strings.Contains(err.Error(), "cluster.json") {
			t.Errorf("%s is read as %+v, error %v; want an error that names cluster.json", text, r, err)
		}
	}
}

// TestCosts checks the cost of a model that is measured, and that of one that cannot be measured,
// which is a guess.
func TestCosts(t *testing.T) {
	t.Parallel()
	run, _, o := prepared(t, "slurm", smallTasks...)
	st, err := study.Load(filepath.Join(run, "study.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	work := workOf(t, run, o)
	// The cells are two measures at two angles.
	if len(work) != 2 || work[0].Forwards != 900 || work[0].Cells != 4 || work[0].Blocks != 20 {
		t.Fatalf("the work is %+v, want two models, the first of 900 samples, 4 cells and 20 blocks", work)
	}
	start := time.Now()
	costs, err := Costs(t.Context(), work, func(ctx context.Context, w study.Work) (Cost, error) {
		if w.Model == "b" {
			return Cost{}, errors.New("no measurement")
		}
		return Measure(ctx, st, run, w, o)
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b := costs[0], costs[1]
	most := 900 * time.Since(start).Seconds() // a sample takes at most the time of the measurement
	if !a.Measured || a.Open <= 0 || a.Samples <= 0 || a.Samples > most || a.Memory < mebibyte || a.Blocks != 20 {
		t.Errorf("the measured cost is %+v, want one of 0 to %g s and 20 blocks", a, most)
	}
	// Both models have the same size: the guess is scaled to the measured cost.
	if b.Measured || b.Note != "no measurement" || b.Samples < a.total()*0.99 || b.Samples > a.total()*1.01 {
		t.Errorf("the guessed cost is %+v, want the measured one, %+v, within 1 %%", b, a)
	}
	if left, _ := filepath.Glob(filepath.Join(run, "cells", "*")); len(left) > 0 {
		t.Errorf("measuring leaves %v in the run folder", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Costs(ctx, work, func(context.Context, study.Work) (Cost, error) { return Cost{}, ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled measurement: error %v, want context.Canceled", err)
	}
}

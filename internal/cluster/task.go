package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/unsaved"
)

// States of a task, as the task itself writes them. A task is one program that a scheduler (Slurm
// or Kubernetes) runs on a cluster, to measure some models of a study.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"  // with an error that would occur again in a retry
	Stopped = "stopped" // by a signal; what it has computed is saved, and a new start resumes from it
)

// A TaskState is the content of tasks/NUMBER.json in the folder of a submission, which a task
// rewrites while it runs.
type TaskState struct {
	State   string    `json:"state"`
	Job     string    `json:"job,omitempty"` // of the scheduler
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Start   int       `json:"start"` // number of this start, counted from 1
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	Done    int64     `json:"done"`  // study.Progress.Done of this start: it counts samples of forward passes
	Total   int64     `json:"total"` // study.Progress.Total of this start
	Error   string    `json:"error,omitempty"`
}

// ErrStopped is the error of a task that was interrupted and has saved its measures' running sums.
// Programs exit with ExitStopped for it.
var ErrStopped = errors.New("stopped; the state is saved, and starting the task again resumes from it")

// ExitStopped is the exit code of an unfinished task: EX_TEMPFAIL of sysexits.h.
const ExitStopped = 75

// heartbeat is the interval at which a running task rewrites its TaskState.
const heartbeat = 20 * time.Second

// OwnTask returns the number of the task for which the scheduler started this program, from the
// environment; 0: none.
func OwnTask() int {
	if n, err := strconv.Atoi(os.Getenv("SLURM_ARRAY_TASK_ID")); err == nil && n > 0 {
		return n
	}
	if n, err := strconv.Atoi(os.Getenv("JOB_COMPLETION_INDEX")); err == nil && n >= 0 {
		return n + 1
	}
	return 0
}

// RunTask runs a task, by its number from 1, of a submission (a study divided into tasks), by its
// number too (0: the last). A task is one study.Run of some models, or of one model on a shard, a
// part of the samples. RunTask writes the TaskState into run, the folder with the results of the
// study. If ctx ends before the task, it returns an error that wraps ErrStopped. Starting a task
// twice, on one machine or on two, is harmless.
func RunTask(ctx context.Context, run string, submission, number int, o study.Options) error {
	r, err := Read(run)
	if err != nil {
		return err
	}
	s, err := r.Submission(submission)
	if err != nil {
		return err
	}
	task, err := s.task(number)
	if err != nil {
		return err
	}
	defer unsaved.Hold(ctx)() // the program must not exit before d.close has written the task's state
	d := newStateFile(run, s.Number, number)
	o.Progress = d.follow(o.Progress)
	stop := d.startHeartbeat()
	err = runTask(ctx, run, task, o)
	stop()
	if err != nil && ctx.Err() != nil {
		err = ErrStopped
	}
	return errors.Join(err, d.close(err))
}

func runTask(ctx context.Context, run string, task Task, o study.Options) error {
	s, err := study.Load(filepath.Join(run, "study.yaml"), nil)
	if err != nil {
		return err
	}
	// Complete: the last of the shards of a model also computes its scores.
	o.Only, o.Shard, o.Complete = task.Models, task.Shard, true
	_, err = study.Run(ctx, s, run, o)
	return err
}

// A stateFile updates the file with the TaskState of a task.
type stateFile struct {
	path  string
	mu    sync.Mutex
	state TaskState
}

func taskFile(run string, submission, number int) string {
	return folder(run, submission, "tasks", strconv.Itoa(number)+".json")
}

// newStateFile returns the state file of a task that starts now.
func newStateFile(run string, submission, number int) *stateFile {
	d := &stateFile{path: taskFile(run, submission, number)}
	before, _, _ := readTask(d.path) // if it cannot be read, this is the first start
	host, _ := os.Hostname()
	d.state = TaskState{State: Running, Job: slurmJob(), Host: host, PID: os.Getpid(), Start: before.Start + 1, Started: time.Now().UTC()}
	return d
}

// follow returns a progress function that records progress and calls next.
func (d *stateFile) follow(next func(study.Progress)) func(study.Progress) {
	return func(p study.Progress) {
		d.mu.Lock()
		d.state.Done, d.state.Total = p.Done, p.Total
		d.mu.Unlock()
		if next != nil {
			next(p)
		}
	}
}

// startHeartbeat writes the state at once and at every heartbeat until stop is called. It ignores
// errors, since a run that cannot write its folder fails with an error of its own.
func (d *stateFile) startHeartbeat() (stop func()) {
	d.write()
	quit := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				d.write()
			case <-quit:
				return
			}
		}
	})
	return func() {
		close(quit)
		wait.Wait()
	}
}

// close writes the final state.
func (d *stateFile) close(err error) error {
	switch {
	case errors.Is(err, ErrStopped):
		d.state.State = Stopped
	case err != nil:
		d.state.State, d.state.Error = Failed, printable(err.Error())
	default:
		d.state.State = Done
	}
	return d.write()
}

func (d *stateFile) write() error {
	d.mu.Lock()
	d.state.Updated = time.Now().UTC()
	raw, err := json.Marshal(d.state)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	return atomicfile.Write(d.path, append(raw, '\n'))
}

// readTask reads the state of a task, and returns when it was written by the clock of the file
// system.
func readTask(path string) (TaskState, time.Time, error) {
	var s TaskState
	f, err := os.Open(path)
	if err != nil {
		return s, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, time.Time{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return TaskState{}, time.Time{}, fmt.Errorf("reading %s: %w", path, err)
	}
	s.Error, s.Host = printable(s.Error), printable(s.Host)
	return s, info.ModTime(), nil
}

// isMissing reports whether err is the error for a task that has not written its state yet.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

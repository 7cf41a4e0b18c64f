package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/unsaved"
)

// States of a task, as the task itself writes them.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"  // with an error that would occur again in a retry
	Stopped = "stopped" // by a signal; a new start resumes from the saved state
)

// A TaskState is the content of tasks/NUMBER.json, which a task rewrites while it runs.
type TaskState struct {
	State   string    `json:"state"`
	Job     string    `json:"job,omitempty"` // of the scheduler
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Start   int       `json:"start"` // number of this start, counted from 1
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	Done    int64     `json:"done"`  // study.Progress.Done of this start
	Total   int64     `json:"total"` // study.Progress.Total of this start
	Error   string    `json:"error,omitempty"`
}

// ErrStopped is the error of a task that was interrupted and has saved its state. Programs exit
// with ExitStopped for it.
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

// RunTask runs a task, by its number from 1, of a submission, by its number too (0: the last), and
// writes its TaskState. If ctx ends before the task, it returns an error that wraps ErrStopped.
// Starting a task twice, on one machine or on two, is harmless. prepare is called with the study
// before, and what it returns after it; it may be nil.
func RunTask(ctx context.Context, run string, submission, number int, o study.Options, prepare func(context.Context, *study.Study) (stop func(), err error)) error {
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
	defer unsaved.Hold(ctx)() // the program must not exit before f.close has written the task's state
	f := newStateFile(run, s.Number, number)
	next := o.Progress
	o.Progress = func(p study.Progress) {
		f.mu.Lock()
		f.state.Done, f.state.Total = p.Done, p.Total
		f.mu.Unlock()
		if next != nil {
			next(p)
		}
	}
	stop := f.startHeartbeat()
	err = runTask(ctx, run, task, o, prepare)
	stop()
	if err != nil && ctx.Err() != nil {
		err = ErrStopped
	}
	return errors.Join(err, f.close(err))
}

func runTask(ctx context.Context, run string, task Task, o study.Options, prepare func(context.Context, *study.Study) (func(), error)) error {
	s, err := study.Load(filepath.Join(run, "study.yaml"), nil)
	if err != nil {
		return err
	}
	if prepare != nil {
		done, err := prepare(ctx, s)
		if err != nil {
			return err
		}
		defer done()
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
	path := taskFile(run, submission, number)
	before, _, _ := readTask(path) // if it cannot be read, this is the first start
	host, _ := os.Hostname()
	job := cmp.Or(os.Getenv("SLURM_ARRAY_JOB_ID"), os.Getenv("SLURM_JOB_ID"))
	return &stateFile{path: path, state: TaskState{State: Running, Job: job, Host: host, PID: os.Getpid(), Start: before.Start + 1, Started: time.Now().UTC()}}
}

// startHeartbeat writes the state at once and at every heartbeat until stop is called. Errors are
// left to the run.
func (f *stateFile) startHeartbeat() (stop func()) {
	f.write()
	quit := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.write()
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
func (f *stateFile) close(err error) error {
	switch {
	case errors.Is(err, ErrStopped):
		f.state.State = Stopped
	case err != nil:
		f.state.State, f.state.Error = Failed, printable(err.Error())
	default:
		f.state.State = Done
	}
	return f.write()
}

func (f *stateFile) write() error {
	f.mu.Lock()
	f.state.Updated = time.Now().UTC()
	raw, err := json.Marshal(f.state)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return writeFile(f.path, string(raw)+"\n")
}

// readTask reads the state of a task, and returns when it was written by the clock of the file
// system.
func readTask(path string) (s TaskState, written time.Time, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return s, written, err
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return TaskState{}, written, fmt.Errorf("reading %s: %w", path, err)
	}
	s.Error, s.Host = printable(s.Error), printable(s.Host)
	return s, info.ModTime(), nil
}

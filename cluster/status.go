package cluster

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/scores"
)

// More states of a task, which others find out.
const (
	Queued    = "queued"    // by the scheduler
	Killed    = "killed"    // it ran, it did not end by itself, and the scheduler has it no more
	Lost      = "lost"      // it never ran, and the scheduler has it no more
	Cancelled = "cancelled" // by Cancel
	Unknown   = "unknown"   // the scheduler does not answer
)

// A TaskStatus is how a task is.
type TaskStatus struct {
	Number int  `json:"task"`
	Task   Task `json:"what"`
	// State is one of Queued, Running, Done, Failed, Stopped, Killed, Lost, Cancelled and Unknown.
	State string `json:"state"`
	// Note says why: the scheduler's reason, or the task's error.
	Note string `json:"note,omitempty"`
	TaskState
}

// Unfinished reports whether somebody has to start the task again for it to become done.
func (t TaskStatus) Unfinished() bool {
	return !slices.Contains([]string{Done, Running, Queued, Unknown}, t.State)
}

// A Status is how a submission is.
type Status struct {
	Submission int          `json:"submission"`
	Scheduler  string       `json:"scheduler"`
	Tasks      []TaskStatus `json:"tasks"`
	Merge      string       `json:"merge"`          // queued, running, done, missing (cells), or waiting
	Note       string       `json:"note,omitempty"` // what should be known of the whole
	Cells      int          `json:"cells"`          // of the study, where a record has been written
	Done       int          `json:"done"`
}

// Count is the number of tasks in a state.
func (s *Status) Count(state string) int {
	n := 0
	for _, t := range s.Tasks {
		if t.State == state {
			n++
		}
	}
	return n
}

// Active reports whether tasks may still run.
func (s *Status) Active() bool {
	return s.Count(Queued)+s.Count(Running)+s.Count(Unknown) > 0
}

// lostAfter is how long a task may be silent before it is taken for dead where no scheduler is asked. Being wrong is
// harmless: what two do changes no score.
const lostAfter = 15 * time.Minute

// Find finds out how a submission is: by what its tasks say, and by the scheduler's queue.
func Find(ctx context.Context, run string, s *Submission) (*Status, error) {
	out := &Status{Submission: s.Number, Scheduler: s.Scheduler}
	look := lookup{submission: s, jobs: map[int]string{}}
	for _, j := range s.Jobs { // the last job of a task is the one that counts
		for _, n := range j.Tasks {
			look.jobs[n] = j.ID
		}
	}
	if s.Scheduler == "slurm" {
		var err error
		if look.queue, err = (Slurm{}).Queue(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			out.Note = "the scheduler does not answer, so this is what tasks say of themselves: " + err.Error()
		}
		look.ends = func(job string) map[int]string { return Slurm{}.Endings(ctx, job) }
	}
	var err error
	if look.now, err = fileClock(folder(run, s.Number, "tasks")); err != nil {
		return nil, fmt.Errorf("the run folder: %w", err)
	}
	for i, task := range s.Tasks {
		t := TaskStatus{Number: i + 1, Task: task}
		said, at, err := readTask(taskFile(run, s.Number, i+1))
		switch {
		case err == nil:
			t.TaskState = said
		case !isMissing(err):
			t.Note = err.Error()
		}
		look.settle(&t, err == nil, at)
		out.Tasks = append(out.Tasks, t)
	}
	out.Merge = look.merge()
	if r, err := scores.ReadRecord(filepath.Join(run, "run.json")); err == nil {
		out.Cells, out.Done = r.Cells, r.Done
		switch {
		case r.Finished != nil:
			out.Merge, out.Done = Done, r.Cells
		case len(r.Missing) > 0 && out.Merge != Queued && out.Merge != Running:
			out.Merge = "missing"
			m := r.Missing[0]
			out.Note = strings.TrimPrefix(out.Note+"; "+printable(fmt.Sprintf("the merge lacks cells of %d models, such as %s", len(r.Missing), m.Example)), "; ")
		}
	}
	return out, nil
}

// A lookup is what is known beside what tasks say.
type lookup struct {
	submission *Submission
	jobs       map[int]string              // the last job that was to do a task
	queue      map[jobTask]queued          // nil where the scheduler was not asked or does not answer
	ends       func(string) map[int]string // nil where there is nobody to ask
	ended      map[string]map[int]string   // by job, as asked
	now        time.Time
}

// settle decides a task's state. said tells whether the task has said anything, at when.
func (l *lookup) settle(t *TaskStatus, said bool, at time.Time) {
	t.State = t.TaskState.State
	t.Note = t.Error
	job := l.jobs[t.Number]
	t.Job = cmp.Or(job, t.Job)
	if t.State == Done && said {
		return
	}
	if job != "" && l.queue != nil {
		if q, ok := l.queue[jobTask{job, t.Number}]; ok {
			t.State, t.Note = q.state(), q.Reason
			if t.State == Running {
				t.Note = ""
			}
			return
		}
	}
	switch {
	case t.State == Failed:
	case l.submission.Cancelled != nil && (l.queue != nil || job == ""):
		t.State = Cancelled
	case l.submission.Scheduler != "slurm": // tasks are all that can be asked
		switch {
		case !said:
			t.State = Queued
		case t.State == Stopped && l.now.Sub(at) <= lostAfter:
			t.State, t.Note = Queued, "stopped; starts again" // a pod that was evicted: the merge waits for the next
		case t.State == Running && l.now.Sub(at) > lostAfter:
			t.State, t.Note = Killed, fmt.Sprintf("silent for %v", l.now.Sub(at).Round(time.Second))
		}
	case job == "":
		t.State, t.Note = Lost, "it was not submitted"
	case l.queue == nil:
		if !said {
			t.State = Unknown
		}
	case !said:
		t.State, t.Note = Lost, l.ending(job, t.Number)
	case t.State == Running:
		t.State, t.Note = Killed, l.ending(job, t.Number)
	}
}

// ending is how the scheduler says that a task has ended, in words.
func (l *lookup) ending(job string, task int) string {
	if l.ends == nil {
		return ""
	}
	if l.ended == nil {
		l.ended = map[string]map[int]string{}
	}
	if _, asked := l.ended[job]; !asked {
		l.ended[job] = l.ends(job)
	}
	return strings.ToLower(strings.ReplaceAll(l.ended[job][task], "_", " "))
}

// merge is how the last merge is, by the queue.
func (l *lookup) merge() string {
	for _, j := range slices.Backward(l.submission.Jobs) {
		if q, ok := l.queue[jobTask{job: j.Merge}]; ok {
			return q.state()
		}
	}
	return "waiting"
}

// state is the scheduler's word in ours.
func (q queued) state() string {
	switch q.State {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "SUSPENDED", "STOPPED":
		return Queued
	default:
		return Running
	}
}

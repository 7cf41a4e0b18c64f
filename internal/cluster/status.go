package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/scores"
)

// States of a task that Find determines, besides those that a task itself writes.
const (
	Queued    = "queued"    // in the queue of the scheduler
	Killed    = "killed"    // it started, but neither wrote a final state nor is in the queue
	Lost      = "lost"      // it never started, and is not in the queue
	Cancelled = "cancelled" // by Cancel
	Unknown   = "unknown"   // the scheduler did not answer
)

// missing is the state of a merge that ran and lacks cells.
const missing = "missing"

// A TaskStatus is the status of a task. TaskState is what the task last wrote to its state file.
type TaskStatus struct {
	Number int    `json:"task"`
	Task   Task   `json:"what"`
	State  string `json:"state"`
	Note   string `json:"note,omitempty"` // the scheduler's reason, or the task's error
	TaskState
}

// A Status is the status of a submission.
type Status struct {
	Submission int          `json:"submission"`
	Scheduler  string       `json:"scheduler"`
	Tasks      []TaskStatus `json:"tasks"`
	// Merge is waiting (for the tasks, or not known), queued, running, done or missing; if it has
	// ended without a result, cancelled, failed, killed or lost.
	Merge string `json:"merge"`
	Note  string `json:"note,omitempty"` // a remark on the whole submission
	Cells int    `json:"cells"`          // of the study; 0 if the run folder has no run.json yet
	Done  int    `json:"done"`           // finished cells
}

// Count returns the number of tasks in a state.
func (s *Status) Count(state string) int {
	n := 0
	for _, t := range s.Tasks {
		if t.State == state {
			n++
		}
	}
	return n
}

// Retry returns the numbers of the tasks that have ended without finishing.
func (s *Status) Retry() []int {
	var tasks []int
	for _, t := range s.Tasks {
		if !slices.Contains([]string{Done, Running, Queued, Unknown}, t.State) {
			tasks = append(tasks, t.Number)
		}
	}
	return tasks
}

// Active reports whether tasks are queued, running or unknown, or the merge is queued or running.
func (s *Status) Active() bool {
	return s.tasksActive() || s.Merge == Queued || s.Merge == Running
}

func (s *Status) tasksActive() bool {
	return s.Count(Queued)+s.Count(Running)+s.Count(Unknown) > 0
}

// mustRetryMerge reports whether the merge has ended without a result.
func (s *Status) mustRetryMerge() bool {
	return slices.Contains([]string{Cancelled, Failed, Killed, Lost}, s.Merge)
}

// addNote adds a remark on the whole submission.
func (s *Status) addNote(text string) {
	s.Note = strings.TrimPrefix(s.Note+"; "+text, "; ")
}

// killedAfter is the time without a heartbeat after which a task counts as killed if there is no
// scheduler to query. Starting it twice does no harm.
const killedAfter = 15 * time.Minute

// Find determines the status of a submission from the state files of its tasks and from the
// scheduler. If the scheduler does not answer, Status.Note says so; this is no error. Find returns
// an error if it cannot write to the run folder, whose clock it reads, or if ctx ends.
func Find(ctx context.Context, run string, s *Submission) (*Status, error) {
	out := &Status{Submission: s.Number, Scheduler: s.Scheduler}
	l := lookup{submission: s, endedJobs: map[string]map[jobTask]jobState{}}
	if s.Scheduler == "slurm" {
		var err error
		if l.known, err = (Slurm{}).jobs(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			out.addNote("the scheduler does not answer; the states are those that the tasks have written: " + err.Error())
		}
		l.ended = func(job string) map[jobTask]jobState { return Slurm{}.endedJobs(ctx, job) }
	}
	var err error
	if l.now, err = atomicfile.Clock(folder(run, s.Number, "tasks")); err != nil {
		return nil, fmt.Errorf("the run folder: %w", err)
	}
	jobs := map[int]string{} // retries add jobs; the last one of a task counts
	for _, j := range s.Jobs {
		for _, n := range j.Tasks {
			jobs[n] = j.ID
		}
	}
	for i, task := range s.Tasks {
		t := TaskStatus{Number: i + 1, Task: task}
		state, at, err := readTask(taskFile(run, s.Number, i+1))
		switch {
		case err == nil:
			t.TaskState = state
		case !errors.Is(err, fs.ErrNotExist):
			t.Note = err.Error()
		}
		l.setState(&t, jobs[i+1], err == nil, at)
		out.Tasks = append(out.Tasks, t)
	}
	var note string
	out.Merge, note = l.merge(out.tasksActive())
	if r, err := scores.ReadRecord(filepath.Join(run, "run.json")); err == nil {
		out.Cells, out.Done = r.Cells, r.Done
		switch {
		case r.Finished != nil:
			out.Merge, out.Done = Done, r.Cells
		case len(r.Missing) > 0 && out.Merge != Queued && out.Merge != Running:
			out.Merge = missing
			out.addNote(printable(fmt.Sprintf("the merge lacks cells of %s, such as %s", plural.Of(len(r.Missing), "model"), r.Missing[0].Example)))
		}
	}
	if out.mustRetryMerge() {
		out.addNote("the merge " + note + ": noether cluster retry submits it again")
	}
	return out, nil
}

// A lookup holds what the scheduler and the submission know about tasks.
type lookup struct {
	submission *Submission
	known      map[jobTask]jobState              // nil if the scheduler was not queried or does not answer
	ended      func(string) map[jobTask]jobState // states of a job that the scheduler has forgotten
	endedJobs  map[string]map[jobTask]jobState   // cached results of ended
	now        time.Time                         // by the clock of the run folder
}

// setState determines the state of a task, whose last job is job. reported is true if the task has
// written t.TaskState, at the time at; if reading it failed, t.Note is the error.
func (l *lookup) setState(t *TaskStatus, job string, reported bool, at time.Time) {
	t.State = t.TaskState.State
	t.Note = cmp.Or(t.Error, t.Note)
	t.Job = cmp.Or(job, t.Job)
	if t.State == Done && reported {
		return
	}
	id := jobTask{job, t.Number}
	if active := l.known[id].active(); active != "" {
		t.State, t.Note = active, l.known[id].Reason
		if active == Running {
			t.Note = ""
		}
		return
	}
	age := l.now.Sub(at)
	switch {
	case t.State == Failed: // final
	case l.submission.Cancelled != nil && (l.known != nil || job == ""):
		t.State = Cancelled
	case l.submission.Scheduler != "slurm": // only the states that tasks write are known
		switch {
		case !reported:
			t.State = Queued
		case t.State == Stopped && age <= killedAfter:
			t.State, t.Note = Queued, "stopped; starts again" // the pod was evicted
		case t.State == Running && age > killedAfter:
			t.State, t.Note = Killed, fmt.Sprintf("no heartbeat for %v", age.Round(time.Second))
		}
	case job == "":
		t.State, t.Note = Lost, "it was not submitted"
	case l.known == nil:
		if !reported {
			t.State = Unknown
		}
	case !reported:
		t.State, t.Note = Lost, cmp.Or(l.end(id), t.Note)
	case t.State == Running:
		t.State, t.Note = Killed, l.end(id)
	}
}

// end returns the final state of a job as the scheduler reports it, in lower case; "" if it does
// not know.
func (l *lookup) end(id jobTask) string {
	state, ok := l.known[id]
	if !ok && l.ended != nil {
		if _, asked := l.endedJobs[id.job]; !asked {
			l.endedJobs[id.job] = l.ended(id.job)
		}
		state = l.endedJobs[id.job][id]
	}
	return strings.ToLower(strings.ReplaceAll(state.State, "_", " "))
}

// merge returns the state of the last merge, and how it has ended if it is no longer in the queue.
func (l *lookup) merge(tasksActive bool) (state, note string) {
	for _, j := range slices.Backward(l.submission.Jobs) {
		if active := l.known[jobTask{job: j.Merge}].active(); active != "" {
			return active, ""
		}
	}
	if tasksActive || l.known == nil || len(l.submission.Jobs) == 0 {
		return "waiting", ""
	}
	last := l.submission.Jobs[len(l.submission.Jobs)-1]
	if last.Merge == "" {
		return Lost, "was not submitted"
	}
	switch end := l.end(jobTask{job: last.Merge}); {
	case end == "cancelled" || l.submission.Cancelled != nil:
		return Cancelled, "was cancelled"
	case end == "failed" || end == "completed":
		// A completed merge writes what it did to the record, from which Find sets its state. If the
		// record does not say it, the merge has failed.
		return Failed, "has failed; noether cluster logs shows why"
	case end == "":
		return Lost, "is no longer known to the scheduler"
	default:
		return Killed, "was killed (" + end + ")"
	}
}

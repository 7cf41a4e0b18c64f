package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// Slurm submits to the scheduler Slurm by the commands sbatch, squeue, scancel and scontrol, which
// must be on the PATH, and by sacct where the cluster has an accounting database. Their output is
// parsed leniently, since computing centres wrap these commands and print additional lines.
type Slurm struct{}

// commandTimeout bounds one command of Slurm. A busy controller answers within seconds.
const commandTimeout = time.Minute

// command runs a command of Slurm and returns its output. The error of a cancelled context is the
// cause of its end.
func command(parent context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(parent, commandTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &limited{w: &out, left: 64 << 20}, &limited{w: &errs, left: 64 << 10}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not on the PATH: submit on a machine of the cluster, or print the script by --dry-run", name)
	case parent.Err() != nil:
		return "", fmt.Errorf("%s: %w", name, context.Cause(parent))
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not answer within %v", name, commandTimeout)
	case err != nil:
		return "", fmt.Errorf("%s: %s", name, failureText(errs.String()+out.String(), err))
	}
	return out.String(), nil
}

// failureText returns the last line of the output of a failed command, without control characters.
// Without output it is the text of err.
func failureText(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := printable(lines[len(lines)-1])
	if last == "" {
		return err.Error()
	}
	return last
}

// printable removes control characters and truncates long text.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.TrimSpace(s))
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "..."
	}
	return s
}

// A limited writer discards what exceeds a bound.
type limited struct {
	w    io.Writer
	left int // bytes up to the bound
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.w.Write(p[:n])
	return len(p), nil
}

// Scripts returns the batch scripts of the submission s: a study divided into tasks, and the jobs
// that run them. A task is one run of Noether on a part of the study, and an element of a job
// array. The merge is the job that combines the results of the tasks. run is the path of the run
// folder, which holds all results, and study the name of the study.
func (Slurm) Scripts(run, study string, s *Submission) (task, merge string, err error) {
	task, err = s.taskScript(run, study)
	if err == nil {
		merge, err = s.mergeScript(run, study)
	}
	return task, merge, err
}

// Submit writes the scripts of a new submission and submits all its tasks. r is the content of
// cluster.json, which lists the submissions of the run folder.
func (c Slurm) Submit(ctx context.Context, run string, r *Record, s *Submission) error {
	task, merge, err := c.Scripts(run, r.Study, s)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"run.sbatch": task, "merge.sbatch": merge} {
		if err := atomicfile.Write(folder(run, s.Number, name), []byte(text)); err != nil {
			return err
		}
	}
	tasks := make([]int, len(s.Tasks))
	for i := range tasks {
		tasks[i] = i + 1
	}
	return c.queue(ctx, run, r, s, tasks, nil)
}

// queue submits some of the tasks, and a merge that waits for them. options are flags of sbatch for
// both, which override those in the scripts.
func (c Slurm) queue(ctx context.Context, run string, r *Record, s *Submission, tasks []int, options []string) error {
	if err := r.write(run); err != nil { // the first task reads it when it starts
		return err
	}
	array := ranges(tasks)
	if s.Profile.Throttle > 0 { // at most so many tasks run at once
		array += "%" + strconv.Itoa(s.Profile.Throttle)
	}
	args := append([]string{"--parsable", "--array=" + array}, options...)
	id, err := c.sbatch(ctx, append(args, folder(run, s.Number, "run.sbatch"))...)
	if err != nil {
		return err
	}
	s.Jobs = append(s.Jobs, Job{ID: id, Tasks: tasks, Submitted: time.Now().UTC()})
	s.Cancelled = nil
	if err := r.write(run); err != nil {
		return fmt.Errorf("job %s was submitted but could not be recorded: %w", id, err)
	}
	if err := c.queueMerge(ctx, run, r, s, append([]string{"--dependency=afterany:" + id}, options...)); err != nil {
		return fmt.Errorf("job %s was submitted but its merge was not (noether cluster retry submits it): %w", id, err)
	}
	return nil
}

// queueMerge submits a merge and records it with the last job. options are flags of sbatch.
func (c Slurm) queueMerge(ctx context.Context, run string, r *Record, s *Submission, options []string) error {
	if len(s.Jobs) == 0 {
		return fmt.Errorf("no job of the submission is recorded, so it has no merge: combine its results with noether merge %s", run)
	}
	args := append([]string{"--parsable"}, options...)
	merge, err := c.sbatch(ctx, append(args, folder(run, s.Number, "merge.sbatch"))...)
	if err != nil {
		return err
	}
	s.Jobs[len(s.Jobs)-1].Merge, s.Cancelled = merge, nil
	return r.write(run)
}

// sbatch submits a job and returns its number.
func (Slurm) sbatch(ctx context.Context, args ...string) (string, error) {
	out, err := command(ctx, "sbatch", args...)
	if err != nil {
		return "", err
	}
	return parseSbatch(out)
}

// parseSbatch finds the job number in the output of sbatch --parsable: "123" or "123;cluster" on a
// line of its own.
func parseSbatch(out string) (string, error) {
	lines := strings.Split(out, "\n")
	for _, line := range slices.Backward(lines) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		if isNumber(id) {
			return id, nil
		}
	}
	return "", fmt.Errorf("sbatch printed no job number but %q", printable(out))
}

// isNumber reports whether s is the number of a job or task as Slurm writes it.
func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && s == strconv.FormatUint(n, 10)
}

// ranges formats ascending numbers as Slurm does: 1-3,7.
func ranges(numbers []int) string {
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		text := strconv.Itoa(numbers[i])
		if j > i {
			text += "-" + strconv.Itoa(numbers[j])
		}
		out = append(out, text)
		i = j + 1
	}
	return strings.Join(out, ",")
}

// A queueEntry is the entry of a job, or of a task of a job array, in the queue.
type queueEntry struct {
	State  string // PENDING, RUNNING, ...
	Reason string
}

// A jobTask identifies a task of a job array. Task 0 stands for a job that is not an array.
type jobTask struct {
	job  string
	task int
}

// activeJobs returns the jobs of the user that have not ended.
func (Slurm) activeJobs(ctx context.Context) (map[jobTask]queueEntry, error) {
	who, err := user.Current()
	if err != nil {
		return nil, err
	}
	// The format is the number of the job or job array, the task's index in it, the state, the
	// reason.
	out, err := command(ctx, "squeue", "--noheader", "--array", "--user="+who.Username, "--format=%F|%K|%T|%r")
	if err != nil {
		return nil, err
	}
	return parseQueue(out), nil
}

// parseQueue parses the output of squeue. It ignores lines of another form.
func parseQueue(out string) map[jobTask]queueEntry {
	jobs := map[jobTask]queueEntry{}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 4)
		if len(f) != 4 || !isNumber(f[0]) || !isState(f[2]) {
			continue
		}
		id := jobTask{job: f[0]}
		if isNumber(f[1]) {
			id.task, _ = strconv.Atoi(f[1])
		} else if f[1] != "N/A" {
			continue
		}
		jobs[id] = queueEntry{State: f[2], Reason: printable(f[3])}
	}
	return jobs
}

// isState reports whether s can be a state of Slurm, such as OUT_OF_MEMORY.
func isState(s string) bool {
	return s != "" && len(s) < 40 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// finalStates returns the final state of each task of a job: from the accounting database if there
// is one, else from the controller, which forgets old jobs. It is empty if neither knows the job.
func (Slurm) finalStates(ctx context.Context, job string) map[int]string {
	if out, err := command(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+job, "--format=JobID,State"); err == nil {
		if e := parseAccounts(out, job); len(e) > 0 {
			return e
		}
	}
	out, err := command(ctx, "scontrol", "--oneliner", "show", "job", job)
	if err != nil {
		return nil
	}
	return parseShow(out, job)
}

// parseAccounts parses the output of sacct: 12_3|CANCELLED by 1000. A job that is not an array is
// task 0.
func parseAccounts(out, job string) map[int]string {
	ends := map[int]string{}
	for line := range strings.Lines(out) {
		id, state, ok := strings.Cut(strings.TrimSpace(line), "|")
		number, index, array := strings.Cut(id, "_")
		state, _, _ = strings.Cut(state, " ")
		if ok && number == job && (isNumber(index) || !array) && isState(state) {
			n, _ := strconv.Atoi(index)
			ends[n] = state
		}
	}
	return ends
}

// parseShow parses the output of scontrol --oneliner show job: a line of KEY=VALUE for each task.
func parseShow(out, job string) map[int]string {
	ends := map[int]string{}
	for line := range strings.Lines(out) {
		var array, index, state, id string
		for word := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(word, "=")
			switch {
			case key == "ArrayJobId" && array == "":
				array = value
			case key == "ArrayTaskId" && index == "":
				index = value
			case key == "JobId" && id == "":
				id = value
			case key == "JobState" && state == "":
				state = value
			}
		}
		if array == "" && index == "" && id == job { // no array
			array, index = id, "0"
		}
		if array == job && isNumber(index) && isState(state) {
			n, _ := strconv.Atoi(index)
			ends[n] = state
		}
	}
	return ends
}

// MaxTasks returns the largest number of tasks of a job array on this cluster; 0 if it is unknown.
func (Slurm) MaxTasks(ctx context.Context) int {
	out, err := command(ctx, "scontrol", "show", "config")
	if err != nil {
		return 0
	}
	return parseMaxTasks(out)
}

// parseMaxTasks parses MaxArraySize, which is one more than the largest index.
func parseMaxTasks(out string) int {
	for line := range strings.Lines(out) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "MaxArraySize" && isNumber(strings.TrimSpace(value)) {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return max(0, n-1)
		}
	}
	return 0
}

// Cancel removes the jobs of a submission from the queue and ends those that run, and records
// the time in cluster.json. Running tasks first save their state: the running sums of unfinished
// measures.
func (Slurm) Cancel(ctx context.Context, run string, r *Record, s *Submission) error {
	now := time.Now().UTC()
	s.Cancelled = &now
	if err := r.write(run); err != nil {
		return err
	}
	var ids []string
	for _, j := range s.Jobs {
		ids = append(ids, j.ID)
		if j.Merge != "" {
			ids = append(ids, j.Merge)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := command(ctx, "scancel", append([]string{"--quiet"}, ids...)...)
	return err
}

// slurmJob returns the number of the Slurm job, or job array, that runs this process; "" if none
// does.
func slurmJob() string {
	if array := os.Getenv("SLURM_ARRAY_JOB_ID"); array != "" {
		return array
	}
	return os.Getenv("SLURM_JOB_ID")
}

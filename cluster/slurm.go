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

// Slurm submits to Slurm by its own commands, sbatch, squeue, scancel and scontrol, which must be on the PATH. What
// they print is read as text that anybody may have written: sites wrap these commands and greet their users.
type Slurm struct{}

// patience is how long one of Slurm's commands may take; a busy controller answers within seconds.
const patience = time.Minute

// command runs one of Slurm's commands and returns what it prints.
func command(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &limited{w: &out, left: 64 << 20}, &limited{w: &errs, left: 64 << 10}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not on the PATH: submit on a machine of the cluster, or print the script by --dry-run", name)
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not answer within %v", name, patience)
	case err != nil:
		return "", fmt.Errorf("%s: %s", name, cleaned(errs.String()+out.String(), err))
	}
	return out.String(), nil
}

// cleaned is the last line that a failing command has printed, in a form that harms no terminal.
func cleaned(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := printable(lines[len(lines)-1])
	if last == "" {
		return err.Error()
	}
	return last
}

// printable drops what would move a terminal's cursor, and shortens.
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

// A limited writer drops what goes beyond a bound.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.w.Write(p[:n])
	return len(p), nil
}

// Scripts are the texts of the submission's batch scripts.
func (Slurm) Scripts(run, study string, s *Submission) (task, merge string, err error) {
	task, err = s.taskScript(run, study)
	if err == nil {
		merge, err = s.mergeScript(run, study)
	}
	return task, merge, err
}

// Submit writes the scripts of a new submission and submits all of its tasks.
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
	all := make([]int, len(s.Tasks))
	for i := range all {
		all[i] = i + 1
	}
	return c.queue(ctx, run, r, s, all, nil)
}

// queue submits some of the tasks and a merge that waits for them, with options of sbatch that go before the script's.
func (c Slurm) queue(ctx context.Context, run string, r *Record, s *Submission, tasks []int, options []string) error {
	if err := r.write(run); err != nil { // which the first task reads as soon as it starts
		return err
	}
	array := ranges(tasks)
	if s.Profile.Throttle > 0 {
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
		return fmt.Errorf("job %s is submitted, but not noted: %w", id, err)
	}
	merge, err := c.sbatch(ctx, "--parsable", "--dependency=afterany:"+id, folder(run, s.Number, "merge.sbatch"))
	if err != nil {
		return fmt.Errorf("job %s is submitted, its merge is not (run noether merge when it has ended): %w", id, err)
	}
	s.Jobs[len(s.Jobs)-1].Merge = merge
	return r.write(run)
}

func (Slurm) sbatch(ctx context.Context, args ...string) (string, error) {
	out, err := command(ctx, "sbatch", args...)
	if err != nil {
		return "", err
	}
	return parseSbatch(out)
}

// parseSbatch finds the job's number in what sbatch --parsable prints: "123" or "123;cluster" on a line of its own.
func parseSbatch(out string) (string, error) {
	lines := strings.Split(out, "\n")
	for _, line := range slices.Backward(lines) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		if isNumber(id) {
			return id, nil
		}
	}
	return "", fmt.Errorf("sbatch printed no job number, but %q", printable(out))
}

// isNumber reports whether a text is a number as Slurm writes jobs and tasks.
func isNumber(s string) bool {
	n, err := strconv.ParseUint(s, 10, 32)
	return err == nil && s == strconv.FormatUint(n, 10)
}

// ranges writes ascending numbers as Slurm does: 1-3,7.
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

// A queued is a job, or a task of an array, as the scheduler has it.
type queued struct {
	State  string // PENDING, RUNNING, ...
	Reason string
}

// jobTask names a task of a job array; task 0 is a job that is none.
type jobTask struct {
	job  string
	task int
}

// Queue lists the user's jobs that have not ended.
func (Slurm) Queue(ctx context.Context) (map[jobTask]queued, error) {
	who, err := user.Current()
	if err != nil {
		return nil, err
	}
	out, err := command(ctx, "squeue", "--noheader", "--array", "--user="+who.Username, "--format=%F|%K|%T|%r")
	if err != nil {
		return nil, err
	}
	return parseQueue(out), nil
}

// parseQueue reads the lines of squeue. Lines of another form are not ours.
func parseQueue(out string) map[jobTask]queued {
	jobs := map[jobTask]queued{}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(line), "|", 4)
		if len(f) != 4 || !isNumber(f[0]) || !isState(f[2]) {
			continue
		}
		at := jobTask{job: f[0]}
		if isNumber(f[1]) {
			at.task, _ = strconv.Atoi(f[1])
		} else if f[1] != "N/A" {
			continue
		}
		jobs[at] = queued{State: f[2], Reason: printable(f[3])}
	}
	return jobs
}

// isState tells a word such as OUT_OF_MEMORY.
func isState(s string) bool {
	return s != "" && len(s) < 40 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// Endings says how tasks of a job have ended, as far as the scheduler remembers: by its accounts where it keeps any,
// else what the controller has not yet forgotten.
func (Slurm) Endings(ctx context.Context, job string) map[int]string {
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

// parseAccounts reads the lines of sacct: 12_3|CANCELLED by 1000.
func parseAccounts(out, job string) map[int]string {
	ends := map[int]string{}
	for line := range strings.Lines(out) {
		id, state, ok := strings.Cut(strings.TrimSpace(line), "|")
		of, index, array := strings.Cut(id, "_")
		state, _, _ = strings.Cut(state, " ")
		if ok && array && of == job && isNumber(index) && isState(state) {
			n, _ := strconv.Atoi(index)
			ends[n] = state
		}
	}
	return ends
}

// parseShow reads what scontrol --oneliner show job prints: a line of KEY=VALUE for each task.
func parseShow(out, job string) map[int]string {
	ends := map[int]string{}
	for line := range strings.Lines(out) {
		var of, index, state string
		for word := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(word, "=")
			switch {
			case key == "ArrayJobId" && of == "":
				of = value
			case key == "ArrayTaskId" && index == "":
				index = value
			case key == "JobState" && state == "":
				state = value
			}
		}
		if of == job && isNumber(index) && isState(state) {
			n, _ := strconv.Atoi(index)
			ends[n] = state
		}
	}
	return ends
}

// MostTasks is the most tasks that an array of this cluster may have; 0 where it does not say.
func (Slurm) MostTasks(ctx context.Context) int {
	out, err := command(ctx, "scontrol", "show", "config")
	if err != nil {
		return 0
	}
	return parseMostTasks(out)
}

// parseMostTasks reads MaxArraySize, which is one more than the largest index.
func parseMostTasks(out string) int {
	for line := range strings.Lines(out) {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "MaxArraySize" && isNumber(strings.TrimSpace(value)) {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return max(0, n-1)
		}
	}
	return 0
}

// Cancel takes a submission's jobs out of the queue and ends those that run; they save first.
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

// Environment of a task that Slurm runs.
func slurmJob() string {
	if array := os.Getenv("SLURM_ARRAY_JOB_ID"); array != "" {
		return array
	}
	return os.Getenv("SLURM_JOB_ID")
}

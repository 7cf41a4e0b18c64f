package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
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

// command runs a command of Slurm and returns its output, or the cause of a cancelled context.
func command(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("no answer within %v", commandTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return string(out), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is not on the PATH: submit on a machine of the cluster, or print the script by --dry-run", name)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &exit):
		lines := strings.Split(strings.TrimSpace(string(exit.Stderr)+string(out)), "\n")
		if last := printable(lines[len(lines)-1]); last != "" {
			err = errors.New(last)
		}
	}
	return "", fmt.Errorf("%s: %w", name, err)
}

// printable removes control characters, and spaces at the ends, and truncates long text.
func printable(s string) string {
	const longest = 300
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s))
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest-3]) + "..."
	}
	return s
}

func writeFile(path, text string) error { return atomicfile.Write(path, []byte(text)) }

// Submit writes the scripts of a new submission and submits all its tasks. r is the content of
// cluster.json.
func (c Slurm) Submit(ctx context.Context, run string, r *Record, s *Submission) error {
	task, merge, err := c.Scripts(run, r.Study, s)
	if err == nil {
		err = writeFile(folder(run, s.Number, "run.sbatch"), task)
	}
	if err == nil {
		err = writeFile(folder(run, s.Number, "merge.sbatch"), merge)
	}
	if err != nil {
		return err
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
	if s.Profile.Throttle > 0 {
		array += "%" + strconv.Itoa(s.Profile.Throttle)
	}
	id, err := sbatch(ctx, folder(run, s.Number, "run.sbatch"), "--array="+array, options)
	if err != nil {
		return err
	}
	s.Jobs = append(s.Jobs, Job{ID: id, Tasks: tasks, Submitted: time.Now().UTC()})
	s.Cancelled = nil
	if err := r.write(run); err != nil {
		return fmt.Errorf("job %s was submitted but could not be recorded: %w", id, err)
	}
	if err := c.queueMerge(ctx, run, r, s, "--dependency=afterany:"+id, options); err != nil {
		return fmt.Errorf("job %s was submitted but its merge was not (noether cluster retry submits it): %w", id, err)
	}
	return nil
}

// queueMerge submits a merge and records it with the last job. dependency may be empty.
func (c Slurm) queueMerge(ctx context.Context, run string, r *Record, s *Submission, dependency string, options []string) error {
	if len(s.Jobs) == 0 {
		return fmt.Errorf("no job of the submission is recorded, so it has no merge: combine its results with noether merge %s", run)
	}
	merge, err := sbatch(ctx, folder(run, s.Number, "merge.sbatch"), dependency, options)
	if err != nil {
		return err
	}
	s.Jobs[len(s.Jobs)-1].Merge, s.Cancelled = merge, nil
	return r.write(run)
}

// sbatch submits a script and returns the number of the job. first may be empty.
func sbatch(ctx context.Context, script, first string, options []string) (string, error) {
	args := []string{"--parsable"}
	if first != "" {
		args = append(args, first)
	}
	out, err := command(ctx, "sbatch", append(append(args, options...), script)...)
	if err != nil {
		return "", err
	}
	return parseSbatch(out)
}

// parseSbatch finds the job number in the output of sbatch --parsable: "123" or "123;cluster" on a
// line of its own.
func parseSbatch(out string) (string, error) {
	for _, line := range slices.Backward(strings.Split(out, "\n")) {
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

// A jobTask identifies a task of a job array. Task 0 stands for a job that is not an array.
type jobTask struct {
	job  string
	task int
}

// A jobState is what Slurm says of a job, or of a task of a job array.
type jobState struct {
	State  string // PENDING, RUNNING, ...
	Reason string
}

// active returns Queued or Running, or "" for a job that has ended.
func (j jobState) active() string {
	switch j.State {
	case "", "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL",
		"OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REVOKED", "TIMEOUT":
		return ""
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "SUSPENDED", "STOPPED":
		return Queued
	default:
		return Running
	}
}

// jobs returns the jobs of the user that the controller remembers: not those that ended long ago.
func (Slurm) jobs(ctx context.Context) (map[jobTask]jobState, error) {
	out, err := command(ctx, "squeue", "--noheader", "--array", "--me", "--states=all", "--format=%F_%K|%T|%r")
	if err != nil {
		return nil, err
	}
	return parseJobs(out), nil
}

// endedJobs returns the states of a job by the accounting database, if the cluster has one.
func (Slurm) endedJobs(ctx context.Context, job string) map[jobTask]jobState {
	out, err := command(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+job, "--format=JobID,State")
	if err != nil {
		return nil
	}
	return parseJobs(out)
}

// jobLine matches a line of squeue or sacct: the job, its task in a job array, the state, and the
// reason.
var jobLine = regexp.MustCompile(`(?m)^\s*([1-9]\d{0,9})(?:_(\d{1,9}|N/A))?\|([A-Z_]{1,40})(?: [^|\n]*)?(?:\|([^\n]*))?$`)

// parseJobs parses the output of squeue or sacct. It ignores lines of another form.
func parseJobs(out string) map[jobTask]jobState {
	jobs := map[jobTask]jobState{}
	for _, m := range jobLine.FindAllStringSubmatch(out, -1) {
		task, _ := strconv.Atoi(m[2]) // "N/A" and "" are no array
		jobs[jobTask{m[1], task}] = jobState{m[3], printable(m[4])}
	}
	return jobs
}

var maxArraySize = regexp.MustCompile(`(?m)^\s*MaxArraySize\s*=\s*(\d{1,9})\s*$`)

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
	m := maxArraySize.FindStringSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return max(0, n-1)
}

// Cancel removes the jobs of a submission from the queue, ends those that run, which first save
// their state, and records the time in cluster.json.
func (Slurm) Cancel(ctx context.Context, run string, r *Record, s *Submission) error {
	now := time.Now().UTC()
	s.Cancelled = &now
	if err := r.write(run); err != nil {
		return err
	}
	args := []string{"--quiet"}
	for _, j := range s.Jobs {
		args = append(args, j.ID)
		if j.Merge != "" {
			args = append(args, j.Merge)
		}
	}
	if len(s.Jobs) == 0 {
		return nil
	}
	_, err := command(ctx, "scancel", args...)
	return err
}

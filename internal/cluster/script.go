package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// mebibyte is the unit of memory of Slurm.
const mebibyte = 1 << 20

// timeLimit returns the time limit of the tasks of a submission; 0: the default of the partition. A
// submission is a study divided into tasks, each of which is one run of Noether on a part of it.
// Its Profile holds what the user asks of the cluster. Without a time there, the limit is the
// longest estimate with a margin, as in memoryRequest.
func (s *Submission) timeLimit() time.Duration {
	if s.Profile.Time > 0 {
		return time.Duration(s.Profile.Time)
	}
	var longest float64
	for _, t := range s.Tasks {
		if t.Seconds == 0 {
			return 0 // not all costs were measured
		}
		longest = max(longest, t.Seconds)
	}
	return time.Duration(2*longest*float64(time.Second)) + 10*time.Minute
}

// memoryRequest returns the requested memory of a task, in bytes; 0: the default of the cluster.
func (s *Submission) memoryRequest() int64 {
	if s.Profile.Memory > 0 {
		return int64(s.Profile.Memory)
	}
	var largest int64
	for _, t := range s.Tasks {
		if t.Memory == 0 {
			return 0 // not all costs were measured
		}
		largest = max(largest, t.Memory)
	}
	return largest*3/2 + 512*mebibyte
}

// taskScript returns the batch script of the job array, whose elements are the tasks. run is the
// path of the run folder, which holds the results. In the script, the saved state is the running
// sums of the measures that are not finished.
func (s *Submission) taskScript(run, studyName string) (string, error) {
	p := s.Profile
	head, err := s.head(run, studyName, "%a.log", p.CPUs)
	if err != nil {
		return "", err
	}
	array := fmt.Sprintf("1-%d", len(s.Tasks))
	if p.Throttle > 0 { // at most so many tasks run at once
		array += fmt.Sprintf("%%%d", p.Throttle)
	}
	head = append(head,
		"--array="+array,
		"--requeue",
		// Slurm sends USR1 to the script (B: the batch shell) some seconds before the time limit.
		fmt.Sprintf("--signal=B:USR1@%d", int(p.Warning.or(2*time.Minute).Seconds())))
	if d := s.timeLimit(); d > 0 {
		head = append(head, "--time="+slurmDuration(d))
	}
	if m := s.memoryRequest(); m > 0 {
		head = append(head, fmt.Sprintf("--mem=%dM", (m+mebibyte-1)/mebibyte))
	}
	if p.GPUs != "" {
		head = append(head, "--gres=gpu:"+p.GPUs)
	}
	var b strings.Builder
	s.writeHead(&b, head, fmt.Sprintf("Task N of this array is one noether run; \"noether cluster status %s\" lists them.", quote(run)))
	// After a requeue the script sleeps until Slurm ends it.
	fmt.Fprintf(&b, `
# A task that is killed, for memory say, starts again here and resumes from its saved state.
soon= ended=
for try in $(seq %d); do
	# Slurm may kill the task a moment before this script, which must not start it again in between.
	[ $try = 1 ] || sleep 2
	[ -z "$soon$ended" ] || break # signalled during the sleep
	"${noether[@]}" cluster task %s "$SLURM_ARRAY_TASK_ID" --submission %d --device %s --threads "${SLURM_CPUS_PER_TASK:-%d}" --save-every %s &
	task=$!
	trap 'soon=yes; kill -TERM $task 2>/dev/null' USR1  # the time limit is near: save and exit
	trap 'ended=yes; kill -TERM $task 2>/dev/null' TERM # cancelled or preempted
	wait $task
	code=$?
	while kill -0 $task 2>/dev/null; do # a signal interrupts wait, not the task
		wait $task
		code=$?
	done
	# Codes above 128 are 128 plus a signal; 143 is TERM. Only a task that was killed otherwise starts again.
	[ $code -gt 128 ] && [ -z "$soon" ] && [ $code != 143 ] || break
	echo "noether: the task was killed (exit code $code, try $try of %d)" >&2
done

# Out of time and neither done (0) nor failed (1): queue the task again, to resume from its saved state.
if [ -n "$soon" ] && [ $code -gt 1 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt %d ]; then
	scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" && sleep 60
fi
exit $code
`, p.Tries, quote(run), s.Number, p.Device, p.CPUs, p.SaveEvery.or(time.Minute), p.Tries, p.Requeues)
	return b.String(), nil
}

// mergeScript returns the batch script of the job that merges the results of the tasks in the run
// folder.
func (s *Submission) mergeScript(run, studyName string) (string, error) {
	head, err := s.head(run, studyName+"-merge", "merge-%j.log", s.Profile.CPUs)
	if err != nil {
		return "", err
	}
	head = append(head, "--requeue")
	if m := s.memoryRequest(); m > 0 {
		head = append(head, fmt.Sprintf("--mem=%dM", (m+mebibyte-1)/mebibyte))
	}
	if s.Profile.Time > 0 {
		head = append(head, "--time="+slurmDuration(time.Duration(s.Profile.Time)))
	}
	var b strings.Builder
	s.writeHead(&b, head, "Runs after all tasks have ended, and lists missing work. It can be run again.")
	fmt.Fprintf(&b, `
exec "${noether[@]}" merge %s --threads "${SLURM_CPUS_PER_TASK:-%d}"
`, quote(run), s.Profile.CPUs)
	return b.String(), nil
}

// head returns the sbatch options of a script.
func (s *Submission) head(run, name, log string, cpus int) ([]string, error) {
	if strings.ContainsAny(run, "%\"'\\`$\n\r") {
		return nil, fmt.Errorf("the path %q has a character that #SBATCH lines do not allow: rename the folder", run)
	}
	p := s.Profile
	out := []string{
		"--job-name=" + jobName(name),
		`--output="` + folder(run, s.Number, "logs", log) + `"`,
		"--open-mode=append",
		"--nodes=1",
		"--ntasks=1",
		fmt.Sprintf("--cpus-per-task=%d", cpus),
	}
	for _, o := range []struct{ flag, value string }{{"partition", p.Partition}, {"account", p.Account}, {"qos", p.QOS}} {
		if o.value != "" {
			out = append(out, "--"+o.flag+"="+o.value)
		}
	}
	return append(out, p.Directives...), nil
}

// writeHead writes the beginning of a script: the sbatch options, a comment, modules, environment
// and setup.
func (s *Submission) writeHead(b *strings.Builder, head []string, comment string) {
	b.WriteString("#!/bin/bash\n")
	for _, line := range head {
		b.WriteString("#SBATCH " + line + "\n")
	}
	fmt.Fprintf(b, "\n# %s\n# Edit it if needed, and submit it with sbatch.\n\n", comment)
	p := s.Profile
	for _, m := range p.Modules {
		fmt.Fprintf(b, "module load %s\n", quote(m))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		fmt.Fprintf(b, "export %s=%s\n", name, quote(p.Environment[name]))
	}
	for _, line := range p.Setup {
		b.WriteString(line + "\n")
	}
	program := quote(cmp.Or(p.Program, "noether"))
	if p.Container != "" {
		program = p.Container + " " + program
	}
	fmt.Fprintf(b, "noether=(%s)\n", program)
}

// quote returns text as one word of the shell. Texts that match the pattern word, such as paths
// without spaces, need no quotes.
func quote(text string) string {
	if text != "" && word.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// jobName converts the name of a study to a name that all schedulers accept: lower-case letters,
// digits and hyphens, at most some 50. Kubernetes allows 63, and a number and "-merge" may follow.
func jobName(study string) string {
	var b strings.Builder
	b.WriteString("noether")
	hyphen := true
	for _, r := range strings.ToLower(study) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			if hyphen {
				b.WriteByte('-')
			}
			b.WriteRune(r)
			hyphen = false
		default:
			hyphen = true
		}
		if b.Len() >= 50 {
			break
		}
	}
	return b.String()
}

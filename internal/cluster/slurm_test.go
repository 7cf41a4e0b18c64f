package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCommandCancelled checks that a cancelled command is not taken for one that timed out.
func TestCommandCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := command(ctx, "go", "version"); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "did not answer") {
		t.Errorf("a cancelled command: error %v, want context.Canceled", err)
	}
}

// TestParseSbatch checks that the job number is found in the output of sbatch --parsable, a line
// "number" or "number;cluster", also among messages.
func TestParseSbatch(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"123\n": "123", "123;lab\n": "123", "Welcome to the cluster!\nsbatch: info: 3 credits\n77\n": "77", "5\n\nthank you\n": "5",
	} {
		if got, err := parseSbatch(out); err != nil || got != want {
			t.Errorf("parseSbatch(%q) = %q, want %q; error %v", out, got, want, err)
		}
	}
	for _, out := range []string{"", "\n", "Submitted batch job", "-3", "0x10", "99999999999999"} {
		if got, err := parseSbatch(out); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("parseSbatch(%q) = %q, want an error of one line; error %v", out, got, err)
		}
	}
}

// TestParseJobs checks the output of squeue and sacct, with a line "job_task|state|reason" for each
// task of a job array, among lines of other forms. A job that is no array has the task N/A in the
// output of squeue, and 0 in the result.
func TestParseJobs(t *testing.T) {
	t.Parallel()
	got := parseJobs("*** maintenance on Friday | all day ***\n" +
		"17_3|RUNNING|None\n17_4|PENDING|(Resources)|or so\n18_N/A|PENDING|Dependency\n17_x|RUNNING|None\n-1_2|RUNNING|None\nslurm_load_jobs error: x\n19_1|lower|None\n")
	want := "map[{17 3}:{RUNNING None} {17 4}:{PENDING (Resources)|or so} {18 0}:{PENDING Dependency}]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	got = parseJobs("17_3|OUT_OF_MEMORY\n17_4|CANCELLED by 1000\n17_[5-9]|PENDING\n170_1|FAILED\n17_6.batch|FAILED\n17_7|\n8|CANCELLED by 0\n8.batch|CANCELLED\n")
	want = "map[{17 3}:{OUT_OF_MEMORY } {17 4}:{CANCELLED } {170 1}:{FAILED } {8 0}:{CANCELLED }]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestParseMaxTasks checks the largest number of tasks in the output of scontrol show config.
// MaxArraySize is one more.
func TestParseMaxTasks(t *testing.T) {
	t.Parallel()
	if n := parseMaxTasks("MailProg = /bin/mail\nMaxArraySize            = 1001\nMaxJobCount = 10000\n"); n != 1000 {
		t.Errorf("at most %d tasks, want 1000", n)
	}
	if n := parseMaxTasks("MaxArraySize = many\n"); n != 0 {
		t.Errorf("at most %d tasks, want 0", n)
	}
}

// TestRanges checks that numbers are written as ranges, as sbatch --array takes them.
func TestRanges(t *testing.T) {
	t.Parallel()
	for want, numbers := range map[string][]int{"1-3,7,9-10": {1, 2, 3, 7, 9, 10}, "4": {4}, "": nil} {
		if got := ranges(numbers); got != want {
			t.Errorf("%v is %s, want %s", numbers, got, want)
		}
	}
}

// FuzzSchedulerOutput checks that any output of a scheduler is parsed without panics, and that
// results contain no control characters.
func FuzzSchedulerOutput(f *testing.F) {
	f.Add("17_3|RUNNING|None\n")
	f.Add("17_3|OUT_OF_MEMORY\n")
	f.Add("MaxArraySize = 1001\n123;lab")
	f.Fuzz(func(t *testing.T, out string) {
		for id, j := range parseJobs(out) {
			if id.job == "" || id.task < 0 || strings.Trim(j.State, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || j.Reason != printable(j.Reason) {
				t.Errorf("%+v is read as %+v, want a job, a task, a state and a printable reason", id, j)
			}
			if s := j.active(); s != Queued && s != Running && s != "" {
				t.Errorf("%+v has the state %v, want Queued, Running or none", j, s)
			}
		}
		if id, err := parseSbatch(out); err == nil && !isNumber(id) {
			t.Errorf("the job is %q, want a number", id)
		} else if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("the error is %q, want one line without escape sequences", err)
		}
		if n := parseMaxTasks(out); n < 0 {
			t.Errorf("at most %d tasks, want 0 or more", n)
		}
	})
}

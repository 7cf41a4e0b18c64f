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

// TestParseQueue checks the output of squeue, with a line "job|task|state|reason" for each task of
// a job array, among lines of other forms. The task is N/A for a job that is no array, and then 0
// in the result.
func TestParseQueue(t *testing.T) {
	t.Parallel()
	got := parseQueue("*** maintenance on Friday | all day ***\n" +
		"17|3|RUNNING|None\n17|4|PENDING|(Resources)|or so\n18|N/A|PENDING|Dependency\n17|x|RUNNING|None\n-1|2|RUNNING|None\nslurm_load_jobs error: x\n19|1|lower|None\n")
	want := "map[{17 3}:{RUNNING None} {17 4}:{PENDING (Resources)|or so} {18 0}:{PENDING Dependency}]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestParseFinalStates checks the states of the tasks of job 17 in the output of sacct and scontrol
// show job, and the largest number of tasks in that of scontrol show config. MaxArraySize is one
// more than this number.
func TestParseFinalStates(t *testing.T) {
	t.Parallel()
	accounts := parseAccounts("17_3|OUT_OF_MEMORY\n17_4|CANCELLED by 1000\n17_[5-9]|PENDING\n170_1|FAILED\n17_6.batch|FAILED\n17_7|\n", "17")
	if want := "map[3:OUT_OF_MEMORY 4:CANCELLED]"; fmt.Sprint(accounts) != want {
		t.Errorf("%v, want %s", accounts, want)
	}
	show := parseShow("JobId=19 ArrayJobId=17 ArrayTaskId=2 JobName=ArrayTaskId=9 JobState=TIMEOUT Reason=TimeLimit\n"+
		"JobId=17 ArrayJobId=17 ArrayTaskId=3-12 JobState=PENDING\nJobId=20 ArrayJobId=16 ArrayTaskId=1 JobState=FAILED\nslurm_load_jobs error\n", "17")
	if want := "map[2:TIMEOUT]"; fmt.Sprint(show) != want {
		t.Errorf("%v, want %s", show, want)
	}
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
	f.Add("17|3|RUNNING|None\n")
	f.Add("17_3|OUT_OF_MEMORY\n")
	f.Add("JobId=19 ArrayJobId=17 ArrayTaskId=2 JobState=TIMEOUT\n")
	f.Add("MaxArraySize = 1001\n123;lab")
	f.Fuzz(func(t *testing.T, out string) {
		for at, q := range parseQueue(out) {
			if !isNumber(at.job) || at.task < 0 || !isState(q.State) || q.Reason != printable(q.Reason) {
				t.Errorf("%+v is read as %+v, want a job, a task, a state and a printable reason", at, q)
			}
			if s := q.state(); s != Queued && s != Running {
				t.Errorf("%+v has the state %v, want Queued or Running", q, s)
			}
		}
		for _, states := range []map[int]string{parseAccounts(out, "17"), parseShow(out, "17")} {
			for n, state := range states {
				if n < 0 || !isState(state) {
					t.Errorf("task %d has the state %q, want a number and a state of Slurm", n, state)
				}
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

//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRetryChange checks the arguments of sbatch in a retry with more memory and time, with fake
// commands of Slurm. Job 7 was the array of the three tasks, and job 8 the merge, which Slurm has
// killed for memory. The change applies to the tasks and to the merge, which waits for them.
func TestRetryChange(t *testing.T) {
	more := Change{Memory: 400*mebibyte - 1, Time: Duration(4 * time.Hour)}
	for name, c := range map[string]struct {
		state  string // of each task
		change Change
		tasks  []int
		want   []string // lines of arguments, without the folder of the script
	}{
		"tasks":                     {Stopped, Change{}, []int{1, 2, 3}, []string{"--parsable --array=1-3%20 run.sbatch", "--parsable --dependency=afterany:9 merge.sbatch"}},
		"tasks with a change":       {Stopped, more, []int{1, 2, 3}, []string{"--parsable --array=1-3%20 --mem=400M --time=0-04:00:00 run.sbatch", "--parsable --dependency=afterany:9 --mem=400M --time=0-04:00:00 merge.sbatch"}},
		"the merge":                 {Done, Change{}, nil, []string{"--parsable merge.sbatch"}},
		"the merge with a change":   {Done, more, nil, []string{"--parsable --mem=400M --time=0-04:00:00 merge.sbatch"}},
		"the merge with a new time": {Done, Change{Time: more.Time}, nil, []string{"--parsable --time=0-04:00:00 merge.sbatch"}},
		"the merge with new memory": {Done, Change{Memory: mebibyte}, nil, []string{"--parsable --mem=1M merge.sbatch"}},
	} {
		t.Run(name, func(t *testing.T) {
			bin, run := t.TempDir(), t.TempDir()
			log := filepath.Join(bin, "log")
			executable(t, filepath.Join(bin, "sbatch"), "echo \"$@\" >> "+log+"\necho 9")
			executable(t, filepath.Join(bin, "squeue"), "") // no job is queued or running
			executable(t, filepath.Join(bin, "sacct"), "echo '8|OUT_OF_MEMORY'")
			executable(t, filepath.Join(bin, "scontrol"), "exit 1")
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			s := *exampleSubmission(t)
			s.Jobs = []Job{{ID: "7", Tasks: []int{1, 2, 3}, Merge: "8"}}
			r, last, err := New(run, "Big study", s)
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Tasks {
				d := newStateFile(run, 1, i+1)
				d.state.State = c.state
				if err := d.write(); err != nil {
					t.Fatal(err)
				}
			}
			tasks, err := Slurm{}.Retry(t.Context(), run, r, last, c.change)
			if err != nil || !slices.Equal(tasks, c.tasks) {
				t.Errorf("retried the tasks %v, error %v; want %v", tasks, err, c.tasks)
			}
			raw, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(raw), folder(run, 1)+"/", "")), "\n")
			if !slices.Equal(got, c.want) {
				t.Errorf("sbatch was called with %q, want %q", got, c.want)
			}
		})
	}
}

// TestMergeWithoutJob checks that a merge is not submitted if no job is recorded that it could
// belong to, as after a script that was submitted by hand.
func TestMergeWithoutJob(t *testing.T) {
	bin, run := t.TempDir(), t.TempDir()
	executable(t, filepath.Join(bin, "sbatch"), "touch "+filepath.Join(bin, "called"))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r, last, err := New(run, "Big study", *exampleSubmission(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := (Slurm{}).queueMerge(t.Context(), run, r, last, "", nil); err == nil || !strings.Contains(err.Error(), "noether merge "+run) {
		t.Errorf("error %v, want one that names the command", err)
	}
	if _, err := os.Stat(filepath.Join(bin, "called")); err == nil {
		t.Error("sbatch was called")
	}
}

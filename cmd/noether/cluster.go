package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/plural"
)

// clusterCommand returns the command cluster. The flags of the engine are those of ONNX Runtime,
// which runs the models. The state of unfinished work is its running sums, saved in the run folder.
func clusterCommand(engine *engineFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Run a study on Slurm or Kubernetes",
		Long: `Divides a study into tasks of about equal cost and writes a script for Slurm or a manifest for Kubernetes,
which can be edited. A script is also submitted, as one job array followed by a job that merges the
results. Tasks that are killed, preempted or reach their time limit resume from their saved state.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(clusterSubmitCommand(engine), clusterStatusCommand(), clusterLogsCommand(), clusterRetryCommand(),
		clusterCancelCommand(), clusterTaskCommand(engine), clusterWaitCommand(), clusterCalibrateCommand(engine))
	return c
}

// openSubmission reads a submission (a study divided into tasks, and their jobs) of a run folder by
// its number; 0 is the last one. A run folder holds the results of a study. openSubmission also
// returns the absolute path of the folder and its record of all submissions.
func openSubmission(run string, number int) (string, *cluster.Record, *cluster.Submission, error) {
	run, err := filepath.Abs(run)
	if err != nil {
		return run, nil, nil, err
	}
	r, err := cluster.Read(run)
	if err != nil {
		return run, nil, nil, err
	}
	s, err := r.Submission(number)
	return run, r, s, err
}

func clusterStatusCommand() *cobra.Command {
	var number int
	var all, asJSON bool
	c := &cobra.Command{
		Use:     "status RUN",
		Short:   "Print the status of the tasks of a submission",
		Example: "  noether cluster status runs/big\n  noether cluster status runs/big --all",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			run, _, s, err := openSubmission(args[0], number)
			if err != nil {
				return err
			}
			status, err := cluster.Find(c.Context(), run, s)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(status)
			}
			return printStatus(status, all)
		},
	}
	c.Flags().IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	c.Flags().BoolVar(&all, "all", false, "list all tasks, including queued and finished ones")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printStatus prints a table of tasks (without all only those that are neither done nor queued),
// the number of tasks in each state, and the number of finished cells. A cell is one measure of one
// model on one data set, under one transformation value, in one trial.
func printStatus(s *cluster.Status, all bool) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "task\tstate\tjob\thost\tdone\ttime\twhat\tnote")
	listed := 0
	for _, task := range s.Tasks {
		if !all && (task.State == cluster.Done || task.State == cluster.Queued) {
			continue
		}
		listed++
		progress, duration := "", ""
		if task.Total > 0 {
			progress = fmt.Sprintf("%d %%", 100*task.Done/task.Total)
		}
		if !task.Started.IsZero() {
			duration = task.Updated.Sub(task.Started).Round(time.Second).String()
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", task.Number, task.State, task.Job, task.Host, progress, duration, taskTitle(task.Task), task.Note)
	}
	if listed > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Println()
	}
	var counts []string
	for _, state := range []string{cluster.Done, cluster.Running, cluster.Queued, cluster.Failed, cluster.Killed, cluster.Stopped, cluster.Lost, cluster.Cancelled, cluster.Unknown} {
		if n := s.Count(state); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	fmt.Printf("%s: %s; merge: %s", plural.Of(len(s.Tasks), "task"), strings.Join(counts, ", "), s.Merge)
	if s.Cells > 0 {
		fmt.Printf(" (%d of %s)", s.Done, plural.Of(s.Cells, "cell"))
	}
	fmt.Println()
	if s.Note != "" {
		fmt.Println(s.Note)
	}
	return nil
}

// taskTitle returns the names of the first models of a task, and its shard (the part of the
// samples that it measures) if that is not the whole.
func taskTitle(t cluster.Task) string {
	names := t.Models
	if len(names) > 3 {
		names = append(slices.Clone(names[:2]), fmt.Sprintf("and %d more", len(names)-2))
	}
	title := strings.Join(names, ", ")
	if !t.Shard.Whole() {
		title += fmt.Sprintf(" %d/%d", t.Shard.Index, t.Shard.Count)
	}
	return title
}

func clusterRetryCommand() *cobra.Command {
	var number int
	var memory, limit string
	var asJSON bool
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Submit unfinished tasks again",
		Long: `Submits the tasks that ended without finishing (failed, stopped, killed, lost or cancelled) again, with
the current scripts in the run folder. They resume from their saved state.`,
		Example: "  noether cluster retry runs/big --mem 16GiB",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			run, r, s, err := openSubmission(args[0], number)
			if err != nil {
				return err
			}
			change, err := parseChange(c, memory, limit)
			if err != nil {
				return err
			}
			if s.Scheduler != "slurm" {
				return fmt.Errorf("submission %d was made for Kubernetes: delete its jobs and apply %s again; finished work is kept", s.Number, cluster.ManifestPath(run, s.Number))
			}
			tasks, err := cluster.Slurm{}.Retry(c.Context(), run, r, s, change)
			if errors.Is(err, cluster.ErrNothingToRetry) {
				fmt.Fprintln(os.Stderr, "noether: "+err.Error())
				return nil
			}
			if err != nil {
				return err
			}
			job := s.Jobs[len(s.Jobs)-1]
			if asJSON {
				return printJSON(job)
			}
			if len(tasks) == 0 {
				fmt.Printf("submitted the merge as job %s\n", job.Merge)
				return nil
			}
			fmt.Printf("submitted %s as job %s, and the merge as job %s\n", plural.Of(len(tasks), "task"), job.ID, job.Merge)
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	f.StringVar(&memory, "mem", "", "memory of a task and of the merge, instead of that in the scripts, such as 16GiB")
	f.StringVar(&limit, "time", "", "time limit of a task and of the merge, instead of that in the scripts, such as 4h")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func clusterCancelCommand() *cobra.Command {
	var number int
	var asJSON bool
	c := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel the jobs of a submission; retry resumes them",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			run, r, s, err := openSubmission(args[0], number)
			if err != nil {
				return err
			}
			if s.Scheduler != "slurm" {
				return fmt.Errorf("submission %d was made for Kubernetes: kubectl delete -f %s", s.Number, cluster.ManifestPath(run, s.Number))
			}
			if err := (cluster.Slurm{}).Cancel(c.Context(), run, r, s); err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.Jobs)
			}
			fmt.Printf("cancelled submission %d; noether cluster retry %s resumes it\n", s.Number, args[0])
			return nil
		},
	}
	c.Flags().IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func clusterWaitCommand() *cobra.Command {
	var number int
	var every, timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait until no task of a submission, nor its merge, runs or is queued",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			run, _, s, err := openSubmission(args[0], number)
			if err != nil {
				return err
			}
			ctx := c.Context()
			if timeout > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("tasks are still queued or running after %v", timeout))
				defer cancel()
			}
			status, err := cluster.Wait(ctx, run, s, every)
			if err != nil && !errors.Is(err, cluster.ErrMergeEnded) { // that error: the merge ended without all scores
				return err
			}
			if asJSON {
				return errors.Join(printJSON(status), err)
			}
			return errors.Join(printStatus(status, false), err)
		},
	}
	f := c.Flags()
	f.IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	f.DurationVar(&every, "every", 10*time.Second, "interval between queries")
	f.DurationVar(&timeout, "timeout", 0, "give up after this time (default: never)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// clusterTaskCommand returns the command that the scripts of a submission call.
func clusterTaskCommand(engine *engineFlags) *cobra.Command {
	var number int
	var every time.Duration
	c := &cobra.Command{
		Use:   "task RUN [NUMBER]",
		Short: "Run one task of a submission; called by its scripts",
		Long: `Runs the task of the given number in "noether cluster status --all". Without a number it runs the task
that the environment of the scheduler selects. Exit code 75: the task was stopped, and its state is
saved.`,
		Args: usageArgs(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			task := cluster.OwnTask()
			if len(args) == 2 {
				task, _ = strconv.Atoi(args[1])
			}
			if task < 1 {
				return usagef(c, "task needs the number of a task, from 1")
			}
			run, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			o, err := engine.open()
			if err != nil {
				return err
			}
			o.SaveInterval = every
			progress, done := showProgress(os.Stderr)
			o.Progress = progress
			err = cluster.RunTask(c.Context(), run, number, task, o)
			done()
			if err == nil {
				note(fmt.Sprintf("task %d of %s is done", task, run))
			}
			return err
		},
	}
	c.Flags().IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	c.Flags().DurationVar(&every, "save-every", time.Minute, "interval at which unfinished work is saved")
	return c
}

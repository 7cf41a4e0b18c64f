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
	"time"

	"github.com/spf13/cobra"

	"github.com/noether-ml/noether/internal/cluster"
	"github.com/noether-ml/noether/internal/plural"
)

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
		clusterCancelCommand(), clusterTaskCommand(engine), clusterWaitCommand())
	return c
}

type openSubmission struct {
	*cluster.Submission
	arg, run string // the run folder as given, and its absolute path
	record   *cluster.Record
	asJSON   bool
}

// onSubmission adds the argument and the flags --submission and --json.
func onSubmission(c *cobra.Command, run func(c *cobra.Command, s *openSubmission) error) *cobra.Command {
	var number int
	var s openSubmission
	c.Args = usageArgs(cobra.ExactArgs(1))
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		s.arg = args[0]
		if s.run, err = filepath.Abs(s.arg); err != nil {
			return err
		}
		if s.record, err = cluster.Read(s.run); err != nil {
			return err
		}
		if s.Submission, err = s.record.Submission(number); err != nil {
			return err
		}
		return run(c, &s)
	}
	c.Flags().IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	addJSON(c, &s.asJSON)
	return c
}

func clusterStatusCommand() *cobra.Command {
	var all bool
	c := onSubmission(&cobra.Command{
		Use:     "status RUN",
		Short:   "Print the status of the tasks of a submission",
		Example: "  noether cluster status runs/big\n  noether cluster status runs/big --all",
	}, func(c *cobra.Command, s *openSubmission) error {
		status, err := cluster.Find(c.Context(), s.run, s.Submission)
		if err != nil {
			return err
		}
		return show(s.asJSON, status, func() error { return printStatus(status, all) })
	})
	c.Flags().BoolVar(&all, "all", false, "list all tasks, including queued and finished ones")
	return c
}

// printStatus prints a table of tasks (without all only those neither done nor queued) and their
// counts.
func printStatus(s *cluster.Status, all bool) error {
	t := newTable(stdout)
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
		t.printf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", task.Number, task.State, task.Job, task.Host, progress, duration, taskTitle(task.Task), task.Note)
	}
	if listed > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(stdout)
	}
	var counts []string
	for _, state := range []string{cluster.Done, cluster.Running, cluster.Queued, cluster.Failed, cluster.Killed, cluster.Stopped, cluster.Lost, cluster.Cancelled, cluster.Unknown} {
		if n := s.Count(state); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	fmt.Fprintf(stdout, "%s: %s; merge: %s", plural.Of(len(s.Tasks), "task"), strings.Join(counts, ", "), s.Merge)
	if s.Cells > 0 {
		fmt.Fprintf(stdout, " (%d of %s)", s.Done, plural.Of(s.Cells, "cell"))
	}
	fmt.Fprintln(stdout)
	if s.Note != "" {
		fmt.Fprintln(stdout, s.Note)
	}
	return nil
}

// taskTitle returns the names of the first models of a task, and its shard if it has one.
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

func clusterLogsCommand() *cobra.Command {
	var lines int
	var tasks []int
	var merge bool
	c := onSubmission(&cobra.Command{
		Use:   "logs RUN",
		Short: "Print the logs of tasks",
		Long: `Prints the last lines of the logs of the tasks that retry would submit (failed, stopped, killed, lost or cancelled), or
of the given tasks.`,
		Example: `  noether cluster logs runs/big
  noether cluster logs runs/big --task 3 --lines 100
  noether cluster logs runs/big --merge`,
	}, func(c *cobra.Command, s *openSubmission) error {
		if lines < 1 {
			return usagef(c, "--lines is %d; it must be 1 or more", lines)
		}
		if len(tasks) == 0 && !merge {
			status, err := cluster.Find(c.Context(), s.run, s.Submission)
			if err != nil {
				return err
			}
			tasks = status.Retry()
		}
		logs, err := cluster.Logs(s.run, s.Submission, tasks, merge, lines)
		if err != nil {
			return err
		}
		return show(s.asJSON, logs, func() error {
			for _, l := range logs {
				fmt.Fprintln(stdout, strings.Join(append([]string{"==> " + l.File + " <=="}, l.Lines...), "\n")+"\n")
			}
			if len(logs) == 0 {
				fmt.Fprintln(stdout, "no task is to be retried: use --task or --merge for other logs")
			}
			return nil
		})
	})
	f := c.Flags()
	f.IntSliceVar(&tasks, "task", nil, "numbers of the tasks")
	f.BoolVar(&merge, "merge", false, "print the log of the merge")
	f.IntVar(&lines, "lines", 20, "number of lines from the end of each log")
	return c
}

func clusterRetryCommand() *cobra.Command {
	var memory, limit string
	c := onSubmission(&cobra.Command{
		Use:   "retry RUN",
		Short: "Submit unfinished tasks again",
		Long: `Submits the tasks that ended without finishing (failed, stopped, killed, lost or cancelled) again, with
the current scripts in the run folder. They resume from their saved state.`,
		Example: "  noether cluster retry runs/big --mem 16GiB",
	}, func(c *cobra.Command, s *openSubmission) error {
		change, err := parseChange(c, memory, limit)
		if err != nil {
			return err
		}
		if s.Scheduler != "slurm" {
			return fmt.Errorf("submission %d was made for Kubernetes: delete its jobs and apply %s again; finished work is kept", s.Number, cluster.ManifestPath(s.run, s.Number))
		}
		tasks, err := cluster.Slurm{}.Retry(c.Context(), s.run, s.record, s.Submission, change)
		if errors.Is(err, cluster.ErrNothingToRetry) {
			note(err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		job := s.Jobs[len(s.Jobs)-1]
		return show(s.asJSON, job, func() error {
			if len(tasks) == 0 {
				fmt.Fprintf(stdout, "submitted the merge as job %s\n", job.Merge)
			} else {
				fmt.Fprintf(stdout, "submitted %s as job %s, and the merge as job %s\n", plural.Of(len(tasks), "task"), job.ID, job.Merge)
			}
			return nil
		})
	})
	c.Flags().StringVar(&memory, "mem", "", "memory of a task and of the merge, instead of that in the scripts, such as 16GiB")
	c.Flags().StringVar(&limit, "time", "", "time limit of a task and of the merge, instead of that in the scripts, such as 4h")
	return c
}

func clusterCancelCommand() *cobra.Command {
	return onSubmission(&cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel the jobs of a submission; retry resumes them",
	}, func(c *cobra.Command, s *openSubmission) error {
		if s.Scheduler != "slurm" {
			return fmt.Errorf("submission %d was made for Kubernetes: kubectl delete -f %s", s.Number, cluster.ManifestPath(s.run, s.Number))
		}
		if err := (cluster.Slurm{}).Cancel(c.Context(), s.run, s.record, s.Submission); err != nil {
			return err
		}
		return show(s.asJSON, s.Jobs, func() error {
			fmt.Fprintf(stdout, "cancelled submission %d; noether cluster retry %s resumes it\n", s.Number, s.arg)
			return nil
		})
	})
}

func clusterWaitCommand() *cobra.Command {
	var every, timeout time.Duration
	c := onSubmission(&cobra.Command{
		Use:   "wait RUN",
		Short: "Wait until no task of a submission, nor its merge, runs or is queued",
	}, func(c *cobra.Command, s *openSubmission) error {
		ctx := c.Context()
		if timeout > 0 {
			var cancel func()
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("tasks are still queued or running after %v", timeout))
			defer cancel()
		}
		status, err := cluster.Wait(ctx, s.run, s.Submission, every)
		if err != nil && !errors.Is(err, cluster.ErrMergeEnded) {
			return err
		}
		return errors.Join(show(s.asJSON, status, func() error { return printStatus(status, false) }), err)
	})
	c.Flags().DurationVar(&every, "every", 10*time.Second, "interval between queries")
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time (default: never)")
	return c
}

func clusterTaskCommand(engine *engineFlags) *cobra.Command {
	var number int
	var every time.Duration
	var python pythonFlags
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
			err = cluster.RunTask(c.Context(), run, number, task, o, python.start)
			done()
			if err == nil {
				note(fmt.Sprintf("task %d of %s is done", task, run))
			}
			return err
		},
	}
	python.add(c.Flags())
	c.Flags().IntVar(&number, "submission", 0, "number of the submission (default: the last)")
	c.Flags().DurationVar(&every, "save-every", time.Minute, "interval at which unfinished work is saved")
	return c
}

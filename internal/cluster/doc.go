// Package cluster runs a study on a cluster. It divides the study into tasks, writes a batch script
// for Slurm or a manifest for Kubernetes, submits the script (a manifest is left to kubectl apply),
// and reads the progress from the run folder and the scheduler. Queues, arrays, dependencies and
// restarts are the scheduler's: see scripts.tmpl and jobs.tmpl.
//
// A submission is a list of tasks. Each task is one call of study.Run, for some whole models, or
// for one shard of a model that would take too long by itself:
//
//	noether run study.yaml -o RUN --only resnet20 --only resnet32
//	noether run study.yaml -o RUN --only vit --shard 2/5 --complete
//
// Whole models are preferred because they leave nothing to merge. With --complete, a shard that
// ends scores each cell of which the states of all shards are there. The merge is the job after all
// tasks, which writes the tables and lists missing work.
//
// # Balance
//
// Let o be the time in seconds to open a model, w the time that grows with the number of samples,
// and s the time to compute scores. Divided into k shards, the model is planned as k tasks of o +
// w/k + s/k seconds: shards that end together share the cells to be scored, and one that ends long
// after the others scores them all. For a limit T, each model with o + w + s > T is divided into
// the smallest number of shards of at most T, or into as many as its samples allow. The other
// models are packed into tasks of at most T: longest first, each into the fullest task with enough
// time left. Balance searches for a small T with at most the requested number of tasks, by
// bisection.
//
// study.Estimate measures o, w and s. Without it, o and s are 0, and w is the product of
// parameters, input size and number of forward passes: tasks are balanced, and their time is not
// estimated.
//
// # Files
//
// A submission has these files in the run folder; all but the logs are replaced atomically:
//
//	cluster.json               submissions, their tasks and jobs
//	cluster/1/run.sbatch       the script of the tasks
//	cluster/1/merge.sbatch     the script of the merge
//	cluster/1/tasks/7.json     the status of task 7 of submission 1, written by the task itself
//	cluster/1/logs/7.log       its output
package cluster

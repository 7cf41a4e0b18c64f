// Package cluster runs a study (measures of models on data sets, as a file describes them) on a
// cluster. It divides the study into tasks, writes a script for Slurm or a manifest for Kubernetes,
// submits the script (a manifest is left to kubectl apply), and reports the progress. Users can
// read and edit the script or the manifest. All files are in the run folder, which holds the
// results of the study.
//
// A submission is a list of tasks. Each task is one call of study.Run, for some whole models, or
// for one shard (a part of the samples) of a model that would take too long by itself:
//
//	noether run study.yaml -o RUN --only resnet20 --only resnet32
//	noether run study.yaml -o RUN --only vit --shard 2/5 --complete
//
// Whole models are preferred because they leave nothing to merge. The shards of a divided model
// save the states of their accumulators, the running sums of measures, in the run folder. With
// --complete, a shard that ends merges the states and computes the scores of each cell of which the
// states of all shards are there. A cell is one measure of one model on one data set, with the
// input transformed by one value of a parameter (such as an angle), in one trial (a repetition with
// its own random draws). The merge job at the end writes the tables and lists missing work.
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
// Calibrate measures o, w and s on a few samples. Without it, o and s are 0, and w is the product
// of parameters, input size and number of forward passes: tasks are balanced, and their time is not
// estimated.
//
// # Failures
//
// This section is about Slurm. A task saves the state of its measures every minute by default.
// Slurm queues a task again when it is preempted or its node fails. A task that the kernel kills
// for memory starts again in its allocation; one that Slurm kills for memory needs Retry with more
// memory. A task that is about to reach its time limit gets a signal, saves its state and queues
// itself again. A task that starts again resumes from the saved state. The number of restarts is
// limited. Retry submits the tasks that are neither done nor queued nor running, and a merge. A
// submission has these files in the run folder; all but the logs are replaced atomically:
//
//	cluster.json               submissions, their tasks and jobs
//	cluster/1/run.sbatch       the script of the tasks
//	cluster/1/merge.sbatch     the script of the merge
//	cluster/1/tasks/7.json     the status of task 7 of submission 1, written by the task itself
//	cluster/1/logs/7.log       its output
package cluster

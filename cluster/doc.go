// Package cluster hands a study to a scheduler: Slurm, or Kubernetes. The scheduler is the user's and stays so; this
// package plans, writes a script that a person can read and change, submits it, and says how far it is.
//
// A submission is a list of tasks, each one call of study.Run: a few whole models, or one share of the samples of one
// model that would take too long by itself,
//
//	noether run study.yaml -o RUN --only resnet20 --only resnet32
//	noether run study.yaml -o RUN --only vit --shard 2/5 --complete
//
// Whole models come first because they leave nothing to merge. A model that is divided leaves its accumulators' states in
// the run folder; the shard that ends last merges them, so that merging is spread over the tasks too, and the merge
// job at the end finds little to do beyond writing the tables.
//
// # Balance
//
// Let o be the seconds that a model takes to open, w those that grow with the samples, and s those of computing scores.
// Divided by k it makes k tasks of o + w/k + s/k seconds. Of all limits T such that every model with o + w + s > T
// is divided into the fewest parts that keep to T, and the others are packed into tasks of at most T (longest first,
// each into the fullest task that still takes it), Balance takes the smallest that needs no more than the tasks
// asked for. o, w and s are measured by Calibrate on a few samples; where that is not wanted, w is parameters times input
// size times forwards, which balances but says nothing of seconds.
//
// # What can go wrong
//
// A task saves its state every minute. One that is preempted or whose node fails is queued again by Slurm; one that is
// killed (for memory, say) starts again in its allocation; one that is about to run out of time is told so by a signal,
// saves, and queues itself again. Each goes on from what was saved. What is still not done is named by the merge, and
// Retry submits it again. A submission's own state is in the run folder, in files that are written whole or not at all:
//
//	cluster.json               submissions, their tasks and jobs
//	cluster/1/run.sbatch       what was submitted
//	cluster/1/tasks/7.json     how task 7 of submission 1 is, written by the task itself
//	cluster/1/logs/7.log       what it said
package cluster

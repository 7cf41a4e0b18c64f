// Package cluster runs a study on a cluster: it divides the study into tasks, writes a script or
// manifest for Slurm or Kubernetes, submits it, and reports how far it is. The scripts are plain
// and may be edited before or after submission.
//
// A submission is a list of tasks. Each task is one call of study.Run, for some whole models, or
// for one shard of the samples of a model that would take too long by itself:
//
//	noether run study.yaml -o RUN --only resnet20 --only resnet32
//	noether run study.yaml -o RUN --only vit --shard 2/5 --complete
//
// Whole models are preferred because they leave nothing to merge. The shards of a divided model
// leave the states of their accumulators in the run folder, and the shard that ends last merges
// them. The merge job at the end only writes the tables.
//
// # Balance
//
// Let o be the seconds that a model takes to open, w those that grow with the number of samples,
// and s those of computing scores. Divided by k, the model makes k tasks of o + w/k + s/k seconds.
// For a limit T, each model with o + w + s > T is divided into the fewest parts that keep to T. The
// other models are packed into tasks of at most T, longest first, each into the fullest task with
// room for it. Balance takes the smallest T that needs no more tasks than were asked for.
//
// Calibrate measures o, w and s on a few samples. Without it, w is the product of parameters, input
// size and number of forward passes. That balances the tasks but gives no time.
//
// # Failures
//
// A task saves its state every minute. Slurm queues a task again when it is preempted or its node
// fails. A task that is killed, for memory say, starts again in its allocation. A task that is
// about to reach its time limit gets a signal, saves, and queues itself again. Each resumes from
// what was saved. The merge names what is still missing, and Retry submits it again. The state of a
// submission is in the run folder, in files that are replaced atomically:
//
//	cluster.json               submissions, their tasks and jobs
//	cluster/1/run.sbatch       the script that was submitted
//	cluster/1/tasks/7.json     the state of task 7 of submission 1, written by the task itself
//	cluster/1/logs/7.log       its output
package cluster

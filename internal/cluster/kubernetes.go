package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "github.com/goccy/go-yaml"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// Kubernetes writes the manifest of a submission (a study divided into tasks, each for some models
// or for a part of the samples): an Indexed Job with a pod for each task, and a Job that waits for
// the tasks and merges their results. It does not talk to the cluster; kubectl apply does.
type Kubernetes struct{}

// ManifestPath returns the path of the manifest of a submission. run is the run folder, which holds
// all files and results of the study.
func ManifestPath(run string, number int) string { return folder(run, number, "jobs.yaml") }

// Submit writes the manifest of a new submission s, and the record r that lists all submissions of
// the folder run, into that folder.
func (k Kubernetes) Submit(run string, r *Record, s *Submission) error {
	text, err := k.Manifest(run, r.Study, s)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(ManifestPath(run, s.Number), []byte(text)); err != nil {
		return err
	}
	return r.write(run)
}

// fields is a YAML mapping that keeps its order.
type fields = yaml.MapSlice

func field(key string, v any) yaml.MapItem { return yaml.MapItem{Key: key, Value: v} }

// Manifest returns the text for kubectl apply; study is the study's name. It is an error if the
// profile (the settings of the cluster) lacks the image, claim (PersistentVolumeClaim) or mount, or
// if run is not under the mount.
func (Kubernetes) Manifest(run, study string, s *Submission) (string, error) {
	k := s.Profile.Kubernetes
	mount := filepath.Clean(k.Mount)
	relativePath, err := filepath.Rel(mount, run)
	switch {
	case k.Image == "" || k.Claim == "" || k.Mount == "":
		return "", errors.New("kubernetes needs image, claim and mount: set them in a profile, under kubernetes")
	case err != nil || relativePath == ".." || strings.HasPrefix(relativePath, "../"):
		return "", fmt.Errorf("the run folder %s is not under %s, where the claim %s is mounted: choose a folder under it", run, mount, k.Claim)
	}
	name := fmt.Sprintf("%s-%d", jobName(study), s.Number)
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by noether cluster submit. Edit it if needed, then run: kubectl apply -f %s\n", ManifestPath(run, s.Number))
	b.WriteString("# Pods that are preempted, evicted or killed start again and resume from their saved state; killed ones at most a few\n" +
		"# times. A task that fails with an error is not repeated. To retry: delete the jobs and apply this file again.\n")
	for _, job := range []fields{s.taskJob(run, name), s.mergeJob(run, name+"-merge")} {
		raw, err := yaml.MarshalWithOptions(job, yaml.Indent(2), yaml.IndentSequence(true))
		if err != nil {
			return "", err
		}
		b.WriteString("---\n")
		b.Write(raw)
	}
	return b.String(), nil
}

// taskJob returns the Indexed Job, which runs one pod for each task.
func (s *Submission) taskJob(run, name string) fields {
	p := s.Profile
	n := len(s.Tasks)
	parallel := n
	if p.Throttle > 0 { // largest number of tasks at once
		parallel = min(n, p.Throttle)
	}
	task := s.container("noether", "cluster", "task", run, "--submission", strconv.Itoa(s.Number), "--device", p.Device,
		"--threads", strconv.Itoa(p.CPUs), "--save-every", p.SaveEvery.or(time.Minute).String())
	return s.job(name, fields{
		field("completionMode", "Indexed"),
		field("completions", n),
		field("parallelism", parallel),
		field("backoffLimitPerIndex", p.Tries-1), // restarts
		field("maxFailedIndexes", n),             // a failed task does not stop the others
		field("podFailurePolicy", fields{field("rules", []any{
			// A preempted or evicted pod starts again and is not counted as a restart.
			fields{field("action", "Ignore"), field("onPodConditions", []any{
				fields{field("type", "DisruptionTarget"), field("status", "True")}})},
			// Exit codes of errors, which a restart would repeat.
			fields{field("action", "FailIndex"), field("onExitCodes", fields{
				field("containerName", "noether"), field("operator", "In"), field("values", []int{1, 2})})},
		})}),
	}, nil, task)
}

// mergeJob returns the Job that waits for the tasks and merges their results. An init container
// runs noether cluster wait before the container runs noether merge, so that the image needs no
// shell.
func (s *Submission) mergeJob(run, name string) fields {
	wait := s.container("wait", "cluster", "wait", run, "--submission", strconv.Itoa(s.Number))
	wait = slices.DeleteFunc(wait, func(i yaml.MapItem) bool { return i.Key == "resources" })
	merge := s.container("noether", "merge", run, "--threads", strconv.Itoa(s.Profile.CPUs))
	return s.job(name, fields{field("backoffLimit", s.Profile.Tries-1)}, []any{wait}, merge)
}

// job returns a Job with one pod template: the init containers in before, then the container.
func (s *Submission) job(name string, spec fields, before []any, container fields) fields {
	k := s.Profile.Kubernetes
	meta := fields{field("name", name)}
	if k.Namespace != "" {
		meta = append(meta, field("namespace", k.Namespace))
	}
	meta = append(meta, field("labels", fields{field("app.kubernetes.io/name", "noether")}))
	pod := fields{
		field("restartPolicy", "Never"),
		field("terminationGracePeriodSeconds", int(s.Profile.Warning.or(2*time.Minute).Seconds())),
	}
	if k.ServiceAccount != "" {
		pod = append(pod, field("serviceAccountName", k.ServiceAccount))
	}
	if k.PullSecret != "" {
		pod = append(pod, field("imagePullSecrets", []any{fields{field("name", k.PullSecret)}}))
	}
	if len(k.NodeSelector) > 0 {
		pod = append(pod, field("nodeSelector", sorted(k.NodeSelector)))
	}
	if uid := os.Getuid(); uid > 0 { // so that the files on the volume belong to the user
		pod = append(pod, field("securityContext", fields{field("runAsUser", uid), field("runAsGroup", os.Getgid())}))
	}
	if before != nil {
		pod = append(pod, field("initContainers", before))
	}
	pod = append(pod, field("containers", []any{container}), field("volumes", []any{fields{
		field("name", "shared"), field("persistentVolumeClaim", fields{field("claimName", k.Claim)})}}))
	return fields{
		field("apiVersion", "batch/v1"),
		field("kind", "Job"),
		field("metadata", meta),
		field("spec", append(spec, field("template", fields{field("spec", pod)}))),
	}
}

// container returns a container that runs noether with the given arguments.
func (s *Submission) container(name string, args ...string) fields {
	p := s.Profile
	out := fields{
		field("name", name),
		field("image", p.Kubernetes.Image),
		field("command", append([]string{cmp.Or(p.Program, "noether")}, args...)),
	}
	if len(p.Environment) > 0 {
		var env []any
		for _, key := range slices.Sorted(maps.Keys(p.Environment)) {
			env = append(env, fields{field("name", key), field("value", p.Environment[key])})
		}
		out = append(out, field("env", env))
	}
	resources := fields{field("cpu", strconv.Itoa(p.CPUs))}
	if m := s.memoryRequest(); m > 0 {
		resources = append(resources, field("memory", fmt.Sprintf("%dMi", (m+mebibyte-1)/mebibyte)))
	}
	// A CPU limit would throttle the task.
	limits := slices.DeleteFunc(slices.Clone(resources), func(i yaml.MapItem) bool { return i.Key == "cpu" })
	if p.GPUs != "" {
		count := p.GPUs[strings.LastIndexByte(p.GPUs, ':')+1:]
		limits = append(limits, field("nvidia.com/gpu", count))
	}
	requirements := fields{field("requests", resources)}
	if len(limits) > 0 {
		requirements = append(requirements, field("limits", limits))
	}
	return append(out, field("resources", requirements),
		field("volumeMounts", []any{fields{field("name", "shared"), field("mountPath", filepath.Clean(p.Kubernetes.Mount))}}))
}

// sorted returns a mapping sorted by key.
func sorted(m map[string]string) fields {
	var out fields
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, field(key, m[key]))
	}
	return out
}

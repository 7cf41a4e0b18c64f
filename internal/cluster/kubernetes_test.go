package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/noether-ml/noether/internal/study"
)

// kubernetesSubmission returns a submission, a study divided into tasks for a cluster. The first of
// its three tasks measures two models, and each of the others a shard of a third model. Its profile
// holds the settings of the cluster; the claim is the persistent volume claim that is mounted.
func kubernetesSubmission(t *testing.T) *Submission {
	t.Helper()
	p, err := ParseProfile("k8s.yaml", []byte(`
cpus-per-task: 8
memory: 6GiB
gpus: a100:2
device: cuda
throttle: 4
environment: {HTTPS_PROXY: "http://proxy:3128", EMPTY: "", TRICKY: "yes"}
kubernetes:
  image: registry.example.org/noether:1.2
  namespace: vision
  claim: shared
  mount: /mnt/shared/
  service-account: runner
  pull-secret: pull
  node-selector: {pool: "gpu", zone: "1"}
`))
	if err != nil {
		t.Fatal(err)
	}
	return &Submission{Number: 3, Scheduler: "kubernetes", Profile: p, Tasks: []Task{
		{Models: []string{"a", "b"}}, {Models: []string{"c"}, Shard: study.Shard{Index: 1, Count: 2}}, {Models: []string{"c"}, Shard: study.Shard{Index: 2, Count: 2}},
	}}
}

// decodeJobs decodes the two jobs of a manifest, which follow a document of comments, as strictly
// as the API server: a field that Kubernetes' types do not have is an error.
func decodeJobs(t *testing.T, text string) (tasks, merge batch.Job) {
	t.Helper()
	docs := strings.Split(text, "---\n")
	if len(docs) != 3 {
		t.Fatalf("%d documents, want 3", len(docs))
	}
	for i, job := range []*batch.Job{&tasks, &merge} {
		if err := yaml.UnmarshalStrict([]byte(docs[i+1]), job); err != nil {
			t.Fatalf("%v in\n%s", err, docs[i+1])
		}
		if job.APIVersion != "batch/v1" || job.Kind != "Job" {
			t.Errorf("unexpected %s of %s", job.Kind, job.APIVersion)
		}
	}
	return tasks, merge
}

// TestManifest checks the fields of the two jobs: one with an indexed pod for each task, and one
// that merges their results.
func TestManifest(t *testing.T) {
	t.Parallel()
	// The arguments are the folder of the results, the name of the study and the submission.
	text, err := Kubernetes{}.Manifest("/mnt/shared/runs/big one", "Übung: CIFAR_10!", kubernetesSubmission(t))
	if err != nil {
		t.Fatal(err)
	}
	tasks, merge := decodeJobs(t, text)
	if tasks.Name != "noether-bung-cifar-10-3" || merge.Name != tasks.Name+"-merge" || tasks.Namespace != "vision" || merge.Namespace != "vision" {
		t.Errorf("the jobs are %s/%s and %s/%s, want noether-bung-cifar-10-3 and its merge in the namespace vision", tasks.Namespace, tasks.Name, merge.Namespace, merge.Name)
	}
	spec := tasks.Spec
	if *spec.CompletionMode != batch.IndexedCompletion || *spec.Completions != 3 || *spec.Parallelism != 3 || *spec.BackoffLimitPerIndex != 2 || *spec.MaxFailedIndexes != 3 {
		t.Errorf("the job is %+v, want 3 indexed completions with 2 retries each", spec)
	}
	rules := []batch.PodFailurePolicyRule{
		// A pod that is preempted or evicted starts again, and does not count as a failure.
		{Action: batch.PodFailurePolicyActionIgnore, OnPodConditions: []batch.PodFailurePolicyOnPodConditionsPattern{{Type: core.DisruptionTarget, Status: core.ConditionTrue}}},
		// The command exits with 1 for an error and with 2 for wrong usage: no retry helps.
		{Action: batch.PodFailurePolicyActionFailIndex, OnExitCodes: &batch.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: &spec.Template.Spec.Containers[0].Name, Operator: batch.PodFailurePolicyOnExitCodesOpIn, Values: []int32{1, 2}}},
	}
	if diff := cmp.Diff(rules, spec.PodFailurePolicy.Rules); diff != "" {
		t.Error(diff)
	}
	pod := spec.Template.Spec
	if pod.RestartPolicy != core.RestartPolicyNever { // which a pod failure policy requires
		t.Errorf("the restart policy is %s, want Never", pod.RestartPolicy)
	}
	c := pod.Containers[0]
	want := []string{"noether", "cluster", "task", "/mnt/shared/runs/big one", "--submission", "3", "--device", "cuda", "--threads", "8", "--save-every", "1m0s"}
	if diff := cmp.Diff(want, c.Command); diff != "" {
		t.Error(diff)
	}
	if c.Resources.Requests.Cpu().Value() != 8 || c.Resources.Limits.Memory().Value() != 6<<30 || c.Resources.Limits.Name("nvidia.com/gpu", "").Value() != 2 {
		t.Errorf("the resources are %+v, want 8 CPUs, 6 GiB and 2 GPUs", c.Resources)
	}
	if diff := cmp.Diff([]core.EnvVar{{Name: "EMPTY"}, {Name: "HTTPS_PROXY", Value: "http://proxy:3128"}, {Name: "TRICKY", Value: "yes"}}, c.Env); diff != "" {
		t.Error(diff)
	}
	if pod.Volumes[0].PersistentVolumeClaim.ClaimName != "shared" || c.VolumeMounts[0].MountPath != "/mnt/shared" || c.VolumeMounts[0].Name != pod.Volumes[0].Name {
		t.Errorf("the volume %+v is mounted at %+v, want the claim shared at /mnt/shared", pod.Volumes[0], c.VolumeMounts)
	}
	if pod.ServiceAccountName != "runner" || pod.ImagePullSecrets[0].Name != "pull" || pod.NodeSelector["zone"] != "1" {
		t.Errorf("the pod is %+v, want the service account, the secret and the node selector of the profile", pod)
	}
	if *merge.Spec.BackoffLimit != 2 { // with the first start, 3 tries
		t.Errorf("the merge starts again %d times, want 2", *merge.Spec.BackoffLimit)
	}
	m := merge.Spec.Template.Spec
	if m.InitContainers[0].Command[2] != "wait" || m.Containers[0].Command[1] != "merge" || m.RestartPolicy != core.RestartPolicyNever {
		t.Errorf("the merge runs %v, then %v, want wait and then merge, never restarted", m.InitContainers, m.Containers)
	}
}

// TestManifestErrors checks profiles without a claim or image, and run folders outside the mount.
func TestManifestErrors(t *testing.T) {
	t.Parallel()
	for run, change := range map[string]func(*KubernetesProfile){
		"/mnt/shared/run": func(k *KubernetesProfile) { k.Claim = "" },
		"/mnt/shared":     func(k *KubernetesProfile) { k.Image = "" },
		"/home/run":       func(*KubernetesProfile) {},
		"/mnt/shared2/r":  func(*KubernetesProfile) {},
	} {
		s := kubernetesSubmission(t)
		change(&s.Profile.Kubernetes)
		if text, err := (Kubernetes{}).Manifest(run, "s", s); err == nil {
			t.Errorf("%s: no error, but\n%s", run, text)
		}
	}
}

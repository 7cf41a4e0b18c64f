package fetch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// unpackVariable is the environment variable that tells a child process of
// TestFilesAreSyncedBeforeRename to unpack an archive; its value is the folder with the archive.
const unpackVariable = "NOETHER_TEST_UNPACK"

// TestFilesAreSyncedBeforeRename traces the system calls of a child process that unpacks an archive
// into a temporary folder. The folder must be renamed to its final name, tree, after its files are
// on disk (syncfs), so that a folder of that name is complete even after a loss of power.
func TestFilesAreSyncedBeforeRename(t *testing.T) {
	if dir := os.Getenv(unpackVariable); dir != "" {
		c := newCache(t) // an empty one, into which Tree unpacks
		if _, err := c.Tree(t.Context(), "file://"+filepath.Join(dir, "p.tgz"), ""); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	if err := exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "true").Run(); err != nil {
		if os.Getenv("NOETHER_TESTDATA") != "" { // set where everything that tests need is installed
			t.Fatalf("strace: %v", err)
		}
		t.Skipf("strace: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.tgz"), tarOf(t, true, member{name: "photos/cat/a.png", text: "a cat"}), 0o666); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-e", "trace=syncfs,rename,renameat,renameat2", "-o", calls,
		os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), unpackVariable+"="+dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	raw, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	renamed := regexp.MustCompile(`rename\w*\(.*/\.unpacking-\d+/files", .*/tree"`).FindIndex(raw)
	synced := regexp.MustCompile(`syncfs(\(\d+| resumed>)\) += 0`).FindIndex(raw)
	if renamed == nil || synced == nil || synced[0] > renamed[0] {
		t.Errorf("the files are not synced before the folder is renamed:\n%s", raw)
	}
}

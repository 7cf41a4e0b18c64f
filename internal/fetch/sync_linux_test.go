package fetch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// unpackHere is the environment variable that names an archive's folder for the process that
// TestTreeIsSyncedBeforeItGetsItsName watches.
const unpackHere = "NOETHER_TEST_UNPACK"

// TestTreeIsSyncedBeforeItGetsItsName watches the system calls of a process that unpacks an archive:
// after a loss of power the folder has its name only if its files are on the disk.
func TestTreeIsSyncedBeforeItGetsItsName(t *testing.T) {
	if dir := os.Getenv(unpackHere); dir != "" {
		c := newCache(t)
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
	cmd.Env = append(os.Environ(), unpackHere+"="+dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	raw, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`rename\w*\(.*/\.unpacking-\d+", .*/tree"`).FindIndex(raw)
	synced := regexp.MustCompile(`syncfs(\(\d+| resumed>)\) += 0`).FindIndex(raw)
	if named == nil || synced == nil || synced[0] > named[0] {
		t.Errorf("the files are not synced before the folder gets its name:\n%s", raw)
	}
}

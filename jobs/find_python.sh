# shellcheck shell=bash
# Finds a Python; sourced by setup.sh and by tests.

# python_with MODULES: the path of the first of $PYTHON, python3 and /usr/bin/python3 that imports these modules (comma-separated). A
# Python of pyenv or conda may stand first on PATH and know nothing of Debian's modules.
python_with()
{
    local candidate
    for candidate in "${PYTHON:-python3}" python3 /usr/bin/python3; do
        if "$candidate" -c "import $1" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

#!/usr/bin/env bash
# Makes a virtual environment with the pinned packages of requirements.txt, or fails and says why. Usage: environment.sh FOLDER
set -euo pipefail

folder=$1
wanted=$(dirname "$0")/requirements.txt
[[ -e $folder/requirements.txt ]] && cmp --silent "$wanted" "$folder/requirements.txt" && exit 0

echo "Installing Python packages into $folder"
python3 -m venv "$folder"
"$(dirname "$0")/../thrice.sh" "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
cp "$wanted" "$folder/requirements.txt"
